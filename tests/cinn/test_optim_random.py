"""finalize on random functions: operators in blocks, their nests split and fused at random, as far as that is legal."""

from dataclasses import replace

import numpy as np
import pytest

from minipd.cinn.ir.ast import (
    INT64,
    Alloc,
    Const,
    Dim,
    For,
    Function,
    IfThenElse,
    IterVar,
    Let,
    Load,
    Param,
    Reduce,
    ScheduleBlock,
    Seq,
    Store,
    Var,
)
from minipd.cinn.ir.build import binary, const, identity, index, unary
from minipd.cinn.ir.interpreter import LoopError, interpret
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.verify import verify
from minipd.cinn.ir.walk import blocks, loops, map_statements, rename, statements, substitute
from minipd.cinn.optim import finalize, steps

F32 = np.dtype("f4")
AXES = {"": (), "i": ("i",), "j": ("j",), "ij": ("i", "j")}


class Random:
    """A random function over rows i and columns j, and what it is to give."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.rows, self.columns = (int(n) for n in self.rng.integers(1, 6, 2))
        self.extents = {"i": index(self.rows), "j": index(self.columns)}
        if self.rng.random() < 0.5:             # sizes that only the arrays know
            self.extents = {"i": Dim("x0", 0), "j": Dim("x0", 1)}
        self.values = {"x0": "ij", "x1": "j", "x2": "i"}
        self.allocs, self.nests, self.count = [], [], 0

    def pick(self, things):
        return things[int(self.rng.integers(len(things)))]

    def element(self, name):
        return Load(name, tuple(Var(f"v{a}") for a in AXES[self.values[name]]), F32)

    def block(self, name, body, axes, reduced=""):
        iter_vars = tuple(IterVar(f"v{a}", self.extents[a], "R" if a in reduced else "S") for a in axes)
        nest = ScheduleBlock(name, iter_vars, tuple(Var(f"{a}_{name}") for a in axes), body)
        for a in reversed(axes):
            nest = For(f"{a}_{name}", self.extents[a], nest)
        self.nests.append(nest)

    def new(self, axes):
        name = f"t_{self.count}"
        self.count += 1
        self.values[name] = axes
        self.allocs.append(Alloc(name, tuple(self.extents[a] for a in axes), F32))
        return name, tuple(Var(f"v{a}") for a in axes)

    def operator(self):
        what = self.pick(["unary", "binary", "binary", "reduce", "reduce", "arms", "lets"])
        known = list(self.values)[-4:]
        a, b = self.pick(known), self.pick(list(self.values))
        if what == "reduce":
            if not self.values[a]:
                return
            folded = self.pick([f for f in ("i", "j", "ij") if set(f) <= set(self.values[a])])
            kept = "".join(x for x in self.values[a] if x not in folded)
            op = self.pick(["add", "max", "min", "mul"])
            value = self.element(a)
            name, at = self.new(kept)
            self.block(f"{name}__reduce_init", Store(name, at, identity(op, F32)), kept)
            self.block(name, Reduce(name, at, op, value), "".join(sorted(kept + folded)), folded)
            return
        axes = "".join(sorted(set(self.values[a]) | set(self.values[b])))
        x, y = self.element(a), self.element(b)
        name, at = self.new(axes)
        if what == "unary":
            e = unary(self.pick(["neg", "abs", "tanh"]), binary("mul", x, y))
        elif what == "lets":
            e = binary("add", Var("a", F32), binary("mul", Var("a", F32), y))
            self.block(name, Seq((Let("a", binary("mul", x, const(0.5, F32))), Store(name, at, e))), axes)
            return
        elif what == "arms" and axes:
            v = self.pick(axes)
            cut = int(self.rng.integers(0, 6))
            cond = binary(self.pick(["lt", "ge", "gt", "le", "eq", "ne"]), Var(f"v{v}"), cut)
            if self.rng.random() < 0.3:
                cond = binary(self.pick(["and", "or"]), cond, binary("ge", Var(f"v{self.pick(axes)}"), 2))
            self.block(name, IfThenElse(cond, Store(name, at, x), Store(name, at, unary("neg", y))), axes)
            return
        else:
            e = binary(self.pick(["add", "sub", "max"]), x, y)
        self.block(name, Store(name, at, e), axes)

    def function(self):
        for _ in range(int(self.rng.integers(2, 8))):
            self.operator()
        made = [n for n in self.values if n.startswith("t_")] or ["x0"]
        wanted = dict.fromkeys([made[-1], self.pick(made)])
        params = [Param("x0", F32, 2), Param("x1", F32, 1), Param("x2", F32, 1)]
        self.shapes = []
        for k, name in enumerate(wanted):
            axes = self.values[name]
            params.append(Param(f"y{k}", F32, len(axes), True))
            self.shapes.append(tuple({"i": self.rows, "j": self.columns}[a] for a in axes))
            self.block(f"y{k}", Store(f"y{k}", tuple(Var(f"v{a}") for a in axes), self.element(name)), axes)
        return Function("random", tuple(params), Seq((*self.allocs, *self.nests)))

    def inputs(self):
        shapes = (self.rows, self.columns), (self.columns,), (self.rows,)
        return [self.rng.integers(-3, 4, s).astype(F32) for s in shapes]

    # --------------------------------------------------------------------------------------------- changed loops
    def changed(self, function):
        """A loop split, or two neighbours fused, or a loop of another kind; perhaps an illegal change."""
        what = self.pick(["fuse"] * 6 + ["split", "kind", "swap", "flatten"])
        return replace(function, body=getattr(self, what)(function.body))

    def fuse(self, body):
        def go(s):
            if not isinstance(s, Seq) or self.done:
                return s
            stmts = list(s.stmts)
            for k in self.rng.permutation(len(stmts) - 1):
                a, b = stmts[k:k + 2]
                if isinstance(a, For) and isinstance(b, For) and a.extent == b.extent and a.var[0] == b.var[0]:
                    self.done = True
                    both = Seq((a.body, rename(b.body, {b.var: a.var})))
                    return Seq((*stmts[:k], replace(a, body=flat(both)), *stmts[k + 2:]))
            return s
        self.done = False
        return map_statements(go, body)

    def swap(self, body):
        stmts = list(body.stmts)
        at = [k for k in range(len(stmts) - 1) if not isinstance(stmts[k], Alloc)]
        if at:
            k = self.pick(at)
            stmts[k:k + 2] = stmts[k + 1], stmts[k]
        return Seq(tuple(stmts))

    def split(self, body):
        found = [x for x in loops(body) if x.var.count("_") < 4]
        if not found:
            return body
        loop, factor = self.pick(found), int(self.rng.integers(1, 5))
        outer, inner = f"{loop.var}_0", f"{loop.var}_1"
        at = binary("add", binary("mul", Var(outer), factor), Var(inner))

        def substituted(s):
            if not isinstance(s, ScheduleBlock):
                return s
            values = tuple(substitute(e, {loop.var: at}) for e in s.iter_values)
            old = None if s.predicate is None else substitute(s.predicate, {loop.var: at})
            new = binary("lt", at, loop.extent)
            return replace(s, iter_values=values, predicate=new if old is None else binary("and", old, new))
        count = binary("floordiv", binary("add", loop.extent, factor - 1), factor)
        if isinstance(loop.extent, Const):
            count = index(-(-loop.extent.value // factor))
        new = replace(loop, var=outer, extent=count, body=For(
            inner, index(factor), map_statements(substituted, loop.body)))
        return map_statements(lambda s: new if s == loop else s, body)

    def flatten(self, body):
        found = [x for x in loops(body) if isinstance(x.body, For) and x.body.kind == "serial" == x.kind]
        if not found:
            return body
        outer = self.pick(found)
        inner, var = outer.body, f"{outer.var}_f"
        at = {outer.var: binary("floordiv", Var(var), inner.extent), inner.var: binary("mod", Var(var), inner.extent)}

        def substituted(s):
            if not isinstance(s, ScheduleBlock):
                return s
            predicate = None if s.predicate is None else substitute(s.predicate, at)
            return replace(s, iter_values=tuple(substitute(e, at) for e in s.iter_values), predicate=predicate)
        new = For(var, binary("mul", outer.extent, inner.extent), map_statements(substituted, inner.body))
        return map_statements(lambda s: new if s == outer else s, body)

    def kind(self, body):
        found = loops(body)
        if not found:
            return body
        loop = self.pick(found)
        inner = not loops(loop.body)
        kind = self.pick(["vector", "unroll"] if inner else ["parallel", "unroll"])
        return map_statements(lambda s: replace(s, kind=kind) if s == loop else s, body)


def flat(s):
    return Seq(tuple(y for x in s.stmts for y in (x.stmts if isinstance(x, Seq) else (x,))))


def run(function, inputs, shapes, shuffle=None):
    outputs = [np.empty(s, F32) for s in shapes]
    interpret(function, inputs, outputs, shuffle)
    return outputs


def check(seed):
    r = Random(seed)
    function = r.function()
    verify(function)
    inputs = r.inputs()
    want = run(function, inputs, r.shapes)
    for _ in range(int(r.rng.integers(0, 24))):
        changed = r.changed(function)
        try:
            if changed == function or any(not np.array_equal(a, b, equal_nan=True) for a, b in zip(
                    run(changed, inputs, r.shapes, shuffle=seed), want, strict=True)):
                continue
        except LoopError:
            continue
        verify(changed)
        function = changed
    done, told = function, f"seed {seed}\n{text(function)}"
    for name, done in steps(function):
        try:
            found = run(done, inputs, r.shapes, shuffle=seed)
        except LoopError as error:
            raise AssertionError(f"{name}: {error}\n{told}\n{text(done)}") from error
        for a, b in zip(found, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, err_msg=f"{name}\n{told}\n{text(done)}")
    assert not blocks(done.body) and not any(isinstance(s, Reduce) for s in statements(done.body))
    return function


@pytest.mark.parametrize("part", range(4))
def test_finalize_keeps_what_random_functions_mean(part):
    for seed in range(part, 60, 4):
        check(seed)


@pytest.mark.long
def test_finalize_keeps_what_many_random_functions_mean():
    for seed in range(1000, 1600):
        check(seed)


def test_the_random_functions_have_what_there_is():
    made = [Random(seed) for seed in range(40)]
    functions = [r.function() for r in made]
    kinds = {type(s) for f in functions for s in statements(f.body)}
    assert {Alloc, For, ScheduleBlock, Store, Reduce, IfThenElse, Let} <= kinds
    assert finalize(functions[0]) == finalize(functions[0])
    assert any(x.extent.dtype == INT64 and isinstance(x.extent, Dim) for f in functions for x in loops(f.body))
