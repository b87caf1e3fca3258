"""Primitives that change how the iterations of one loop run: `parallelize`, `vectorize`, `chunk`, `block`.

Each checks its precondition, and raises ScheduleError where it does not hold.
"""

from __future__ import annotations

from dataclasses import replace

from minipd.cinn.ir.ast import (
    Accumulate,
    Alloc,
    Const,
    Expr,
    For,
    Function,
    Init,
    Let,
    Load,
    Seq,
    Stmt,
    Store,
    Var,
)
from minipd.cinn.ir.build import binary, identity, index, seq
from minipd.cinn.ir.simplify import simplify_expression
from minipd.cinn.ir.walk import map_children, map_expressions, own_expressions, statements, walk
from minipd.cinn.schedule.tree import (
    Path,
    ScheduleError,
    accumulated,
    at,
    declarations_at,
    declared,
    edit,
    innermost,
    loads_of,
    stmts_of,
    stores_of,
    unused,
    updates_of,
)

__all__ = ["block", "chunk", "dependences", "parallelize", "vectorize"]


def dependences(loop: For) -> set[str]:
    """The buffers and accumulators from outside the loop through which one iteration may meet another.

    A buffer that is written is harmless if one of its axes is indexed by the loop variable, everywhere in the body.
    """
    own = declared(loop.body)
    found = accumulated(loop.body) - own
    for buffer in {s.buffer for s in stores_of(loop.body)} - own:
        indices = [x.index for x in stores_of(loop.body) if x.buffer == buffer]
        indices += [x.index for x in loads_of(loop.body) if x.buffer == buffer]
        apart = any(all(k < len(i) and i[k] == Var(loop.var) for i in indices) for k in range(len(indices[0])))
        if not apart:
            found.add(buffer)
    return found


def parallelize(function: Function, path: Path) -> Function:
    """The loop may run on several threads.   Needs: no iteration meets another."""
    loop = at(function, path)
    meet = dependences(loop)
    if meet:
        raise ScheduleError(f"parallelize {loop.var}: iterations meet in {', '.join(sorted(meet))}; chunk it instead")
    return _with_kind(function, path, replace(loop, kind="parallel"))


def vectorize(function: Function, path: Path) -> Function:
    """The loop runs in SIMD lanes.   Needs: it contains no loop, and iterations meet in accumulators only."""
    loop = at(function, path)
    if not innermost(loop):
        raise ScheduleError(f"vectorize {loop.var}: it contains a loop")
    meet = dependences(loop) - accumulated(loop.body)
    if meet:
        raise ScheduleError(f"vectorize {loop.var}: iterations meet in {', '.join(sorted(meet))}")
    return _with_kind(function, path, replace(loop, kind="vector"))


def _with_kind(function: Function, path: Path, loop: For) -> Function:
    return edit(function, path, lambda stmts, n: [*stmts[:n], loop, *stmts[n + 1:]])


# ------------------------------------------------------------------------------------------------- reductions
def chunk(function: Function, path: Path, chunks: int, at_least: int = 1, at_most: int | None = None) -> Function:
    """The loop in parallel chunks, each with accumulators of its own, which are combined after it in order.

    The number of chunks depends on the extent alone, so that results don't depend on how many threads there are: it is
    `chunks`; fewer, so that a chunk has `at_least` so many iterations (its accumulators cost something), or more, so
    that it has not more than `at_most` (which bounds the rounding error).
    Needs: iterations meet only where they accumulate, by one operation for each accumulator, which they never read.

        s := 0.0                        s := 0.0
        for i in range(100):            s_parts := local f32[16]
            s += x[i]                   parallel for i_chunk in range(15):
                                            s_part := 0.0
                                            for i_step in range(min(7, 100 - i_chunk * 7)):
                                                i = i_chunk * 7 + i_step
                                                s_part += x[i]
                                            s_parts[i_chunk] = s_part
                                        for i_chunk in range(15):
                                            s += s_parts[i_chunk]
    """
    loop = at(function, path)
    before: list[Stmt] = []             # sizes, and the arrays of partial results
    per = _ceil_div(loop.extent, chunks)
    per = per if at_most is None else _minimum(at_most, per)
    per = _named(function, f"{loop.var}_size", simplify_expression(binary("max", per, at_least)), before)
    count = _named(function, f"{loop.var}_chunks", _ceil_div(loop.extent, per), before)
    t, step = Var(unused(function, f"{loop.var}_chunk")), Var(unused(function, f"{loop.var}_step"))
    start: list[Stmt] = []              # within a chunk, before and after its iterations
    finish: list[Stmt] = []
    combine: list[Stmt] = []
    body = loop.body
    around = declarations_at(function, path)
    for name in sorted(dependences(loop)):
        parts = unused(function, f"{name}_parts")
        declaration = around.get(name)
        if isinstance(declaration, Init):
            op = _operation(loop, name)
            part = unused(function, f"{name}_part")
            dtype = declaration.value.dtype
            before.append(Alloc(parts, (count,), dtype))
            start.append(Init(part, identity(op, dtype)))
            finish.append(Store(parts, (t,), Var(part, dtype)))
            combine.append(For(t.name, count, Accumulate(name, op, Load(parts, (t,), dtype))))  # type: ignore[arg-type]
            body = _renamed_accumulator(body, name, part)
        else:
            update = updates_of(loop.body, name)
            if update is None or not isinstance(declaration, Alloc):
                raise ScheduleError(f"chunk {loop.var}: iterations meet in {name}, which they do not only accumulate")
            op, own_index = update
            dtype = declaration.dtype
            before.append(Alloc(parts, (count, *declaration.shape), dtype))
            inner = [(Var(unused(function, f"{name}_at{k or ''}")), n) for k, n in enumerate(declaration.shape)]
            where = tuple(v for v, _ in inner)
            start.append(_loops_over(inner, Store(parts, (t, *where), identity(op, dtype))))
            combine.append(For(t.name, count, _loops_over(inner, Store(name, where, binary(
                op, Load(name, where, dtype), Load(parts, (t, *where), dtype))))))
            body = _redirected(body, name, parts, t)
    if not combine:
        raise ScheduleError(f"chunk {loop.var}: it accumulates nothing; parallelize it")
    rest = _minimum(per, simplify_expression(binary("sub", loop.extent, binary("mul", t, per))))
    if isinstance(loop.extent, Const) and isinstance(per, Const) and loop.extent.value % per.value == 0:
        rest = per
    steps = For(step.name, rest, Seq((Let(loop.var, _position(t, per, step)), *stmts_of(body))))
    chunked = For(t.name, count, seq([*start, steps, *finish]), "parallel")
    return edit(function, path, lambda stmts, n: [*stmts[:n], *before, chunked, *combine, *stmts[n + 1:]])


def block(function: Function, path: Path, size: int) -> Function:
    """A loop that accumulates into scalars, in blocks of `size`: each block adds up on its own, then to the total.

    The error of a sum of n equal float32 then grows with size + n / size instead of n, which is as sqrt(n) up to
    n = size^2 and slower than n by `size` beyond.   Needs: the loop contains none, and reads no accumulator that it
    adds to.
    """
    loop = at(function, path)
    names = sorted(accumulated(loop.body) - declared(loop.body))
    if not names or not innermost(loop):
        raise ScheduleError(f"block {loop.var}: expected an innermost loop that accumulates")
    around = declarations_at(function, path)
    b, step = Var(unused(function, f"{loop.var}_block")), Var(unused(function, f"{loop.var}_step"))
    start: list[Stmt] = []
    finish: list[Stmt] = []
    body = loop.body
    for name in names:
        op = _operation(loop, name)
        declaration = around[name]
        assert isinstance(declaration, Init)
        part, dtype = unused(function, f"{name}_block"), declaration.value.dtype
        start.append(Init(part, identity(op, dtype)))
        finish.append(Accumulate(name, op, Var(part, dtype)))  # type: ignore[arg-type]
        body = _renamed_accumulator(body, name, part)
    rest = _minimum(size, simplify_expression(binary("sub", loop.extent, binary("mul", b, size))))
    if isinstance(loop.extent, Const) and loop.extent.value % size == 0:
        rest = index(size)
    steps = For(step.name, rest, Seq((Let(loop.var, _position(b, index(size), step)), *stmts_of(body))))
    blocks = For(b.name, _ceil_div(loop.extent, size), seq([*start, steps, *finish]))
    return edit(function, path, lambda stmts, n: [*stmts[:n], blocks, *stmts[n + 1:]])


def _operation(loop: For, name: str) -> str:
    """How the loop accumulates into a scalar."""
    ops = {x.op for x in statements(loop.body) if isinstance(x, Accumulate) and x.name == name}
    reads = any(isinstance(e, Var) and e.name == name for s in statements(loop.body) for e in _own(s))
    if len(ops) != 1 or reads:
        raise ScheduleError(f"{loop.var}: expected one kind of accumulation into {name}, which the loop does not read")
    return ops.pop()


def _own(s: Stmt) -> list[Expr]:
    return [e for whole in own_expressions(s) for e in walk(whole)]


def _renamed_accumulator(s: Stmt, name: str, new: str) -> Stmt:
    match s:
        case Seq(stmts=stmts):
            return Seq(tuple(_renamed_accumulator(x, name, new) for x in stmts))
        case For(body=body):
            return replace(s, body=_renamed_accumulator(body, name, new))
        case Accumulate() if s.name == name:
            return replace(s, name=new)
    return s


def _redirected(s: Stmt, buffer: str, parts: str, t: Var) -> Stmt:
    """Loads from and stores to `buffer` go to row t of `parts`."""
    def redirect(e: Expr) -> Expr:
        e = map_children(redirect, e)
        return Load(parts, (t, *e.index), e.dtype) if isinstance(e, Load) and e.buffer == buffer else e

    def stores(s: Stmt) -> Stmt:
        match s:
            case Seq(stmts=stmts):
                return Seq(tuple(map(stores, stmts)))
            case For(body=body):
                return replace(s, body=stores(body))
            case Store() if s.buffer == buffer:
                return replace(s, buffer=parts, index=(t, *s.index))
        return s
    return stores(map_expressions(redirect, s))


def _loops_over(loops: list[tuple[Var, Expr]], body: Stmt) -> Stmt:
    for v, n in reversed(loops):
        body = For(v.name, n, body)
    return body


def _named(function: Function, name: str, e: Expr, out: list[Stmt]) -> Expr:
    """A number as it is; anything else gets a name."""
    if isinstance(e, Const):
        return e
    out.append(Let(unused(function, name), e))
    return Var(unused(function, name))


def _position(outer: Var, size: Expr, inner: Var) -> Expr:
    return binary("add", binary("mul", outer, size), inner)


def _ceil_div(n: Expr, size: int | Expr) -> Expr:
    return simplify_expression(binary("floordiv", binary("add", n, binary("sub", index(size), 1)), size))


def _minimum(x: int | Expr, y: Expr) -> Expr:
    return simplify_expression(binary("min", index(x), y))
