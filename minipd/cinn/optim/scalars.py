"""Elements of local arrays become scalars.

`buffers_to_scalars`: a local array of one element that is set once is a Let, or, where it is added to afterwards, an
accumulator.  One that is set somewhere deeper stays an array, t[0].

    t := local f32[()]                  t := 0.0f
    t[()] = 0.0f                        for (j, 0, 48)
    for (j, 0, 48)                      {
    {                                     t += x[j]
      t[()] += x[j]                     }
    }                                   y[i] = t
    y[i] = t[()]

`reduce_in_registers`: a loop that adds to one element of an array adds to a scalar, and that to the element.

    p[c] = 0.0f                         p_part := 0.0f
    for (i, 0, 48)                      for (i, 0, 48)
    {                                   {
      p[c] += x[c * 48 + i]               p_part += x[c * 48 + i]
    }                                   }
                                        p[c] = p_part

`lower_reduce`: what still adds to an element loads and stores it.
"""

from __future__ import annotations

from dataclasses import replace

from minipd.cinn.ir.ast import (
    Accumulate,
    Alloc,
    Expr,
    For,
    Function,
    Init,
    Let,
    Load,
    Reduce,
    Seq,
    Stmt,
    Store,
    Var,
)
from minipd.cinn.ir.build import binary, identity, index
from minipd.cinn.ir.walk import (
    buffers_read,
    buffers_written,
    map_bodies,
    map_children,
    map_expressions,
    map_statements,
    names,
    statements,
)
from minipd.cinn.optim.tree import Names, declared, loads_in

__all__ = ["buffers_to_scalars", "lower_reduce", "reduce_in_registers"]


# ---------------------------------------------------------------------------------------------- whole arrays
def buffers_to_scalars(function: Function) -> Function:
    """The function without local arrays of one element, where each is set in the sequence that declares it."""
    taken = Names(function)
    # an array's name is free for its scalar, unless a value that was stored there has it already
    taken.taken -= {x.buffer for x in statements(function.body) if isinstance(x, Alloc)} - {
        x.name for x in statements(function.body) if isinstance(x, Let | Init)}

    def go(s: Stmt) -> Stmt:
        s = map_bodies(go, s)
        if isinstance(s, Seq):
            for alloc in s.stmts:
                assert isinstance(s, Seq)
                if isinstance(alloc, Alloc) and not alloc.shape:
                    scalars = _as_scalars(s, alloc, taken) if alloc.memory == "local" else None
                    s = scalars or _with_an_axis(s, alloc)
        return s
    return replace(function, body=go(function.body))


def _as_scalars(s: Seq, alloc: Alloc, taken: Names) -> Seq | None:
    """s without the array; None if it is set somewhere deeper."""
    buffer = alloc.buffer
    out: list[Stmt] = []
    name: str | None = None
    for k, x in enumerate(s.stmts):
        if x is alloc:
            continue
        x = _scalar_reads(x, buffer, name) if name else x
        if isinstance(x, Store) and x.buffer == buffer:
            name = taken.unused(buffer)
            rest = s.stmts[k + 1:]
            end = next((n for n, y in enumerate(rest) if isinstance(y, Store) and y.buffer == buffer), len(rest))
            added = any(isinstance(y, Reduce) and y.buffer == buffer for z in rest[:end] for y in statements(z))
            out.append(Init(name, x.value) if added else Let(name, x.value))
        elif any(isinstance(y, Store) and y.buffer == buffer for y in statements(x)):
            return None
        elif name is None and buffer in buffers_read(x) | buffers_written(x):
            return None
        else:
            out.append(_accumulated(x, buffer, name) if name else x)
    return Seq(tuple(out))


def _with_an_axis(s: Seq, alloc: Alloc) -> Seq:
    zero = (index(0),)

    def load(e: Expr) -> Expr:
        return replace(e, index=zero) if isinstance(e, Load) and e.buffer == alloc.buffer else map_children(load, e)

    def statement(x: Stmt) -> Stmt:
        if isinstance(x, Store | Reduce) and x.buffer == alloc.buffer:
            return replace(x, index=zero)
        return replace(x, shape=(index(1),)) if x is alloc else x
    stmts = [statement(x) if x is alloc else map_statements(statement, map_expressions(load, x)) for x in s.stmts]
    return Seq(tuple(stmts))


def _scalar_reads(s: Stmt, buffer: str, name: str) -> Stmt:
    def go(e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer == buffer:
            return Var(name, e.dtype)
        return map_children(go, e)
    return map_expressions(go, s) if any(e.buffer == buffer for e in loads_in(s)) else s


def _accumulated(s: Stmt, buffer: str, name: str) -> Stmt:
    return map_statements(lambda x: Accumulate(name, x.op, x.value)
                          if isinstance(x, Reduce) and x.buffer == buffer else x, s)


# --------------------------------------------------------------------------------------------- single elements
def reduce_in_registers(function: Function) -> Function:
    """Elements that a loop adds to, and nothing else does in it, are scalars for as long as it runs."""
    taken = Names(function)

    def go(s: Stmt) -> Stmt:
        if isinstance(s, For):
            s = Seq((s,))
        if isinstance(s, Seq):
            out: list[Stmt] = []
            for x in s.stmts:
                out += _in_registers(x, out, taken) if isinstance(x, For) and x.kind in ("serial", "vector") else [x]
            s = Seq(tuple(map_bodies(go, x) if isinstance(x, For) else go(x) for x in out))
            return s.stmts[0] if len(s.stmts) == 1 else s
        return map_bodies(go, s)
    return replace(function, body=go(function.body))


def _in_registers(loop: For, before: list[Stmt], taken: Names) -> list[Stmt]:
    """The loop with what stands around it; takes the Store of a start value off the end of `before`."""
    inside = declared(loop)
    starts: list[Stmt] = []
    ends: list[Stmt] = []
    for buffer in sorted(buffers_written(loop)):
        updates = [x for x in statements(loop) if isinstance(x, Store | Reduce) and x.buffer == buffer]
        first = updates[0]
        if not isinstance(first, Reduce) or any(
                not isinstance(x, Reduce) or (x.index, x.op) != (first.index, first.op) for x in updates) or any(
                e.buffer == buffer for e in loads_in(loop)) or any(names(e) & inside for e in first.index):
            continue
        start = identity(first.op, first.value.dtype)
        name = taken.unused(f"{buffer}_part")
        loop = _into_scalar(loop, buffer, name)
        set_before = next((k for k in reversed(range(len(before))) if buffer in buffers_written(before[k])
                           | buffers_read(before[k])), None)
        known = None if set_before is None else before[set_before]
        if isinstance(known, Store) and known.index == first.index and known.value == start:
            del before[set_before]  # type: ignore[arg-type]
            ends.append(Store(buffer, first.index, Var(name, start.dtype)))
        else:
            ends.append(Reduce(buffer, first.index, first.op, Var(name, start.dtype)))
        starts.append(Init(name, start))
    return [*starts, loop, *ends]


def _into_scalar(loop: For, buffer: str, name: str) -> For:
    made = _accumulated(loop, buffer, name)
    assert isinstance(made, For)
    return made


def lower_reduce(function: Function) -> Function:
    """Reduce as Store of an operation on a Load."""
    def lowered(s: Stmt) -> Stmt:
        if not isinstance(s, Reduce):
            return s
        return Store(s.buffer, s.index, binary(s.op, Load(s.buffer, s.index, s.value.dtype), s.value))
    return replace(function, body=map_statements(lowered, function.body))
