"""Every row, case by case, as a program: traced values, gradients and second derivatives equal the eager ones.

The eager ones are checked against finite differences in `test_rows.py`.  Each program must also verify and survive its
own text.
"""

import numpy as np

import minipd  # noqa: F401  (wires every floor)
from minipd.autograd.engine import grad
from minipd.framework import dtype as dtypes
from minipd.framework.context import Kernels, using
from minipd.framework.dim import substitute_all
from minipd.framework.meta import Meta
from minipd.framework.tensor import Tensor
from minipd.ir.backward import append_backward
from minipd.ir.evaluate import evaluate
from minipd.ir.parser import parse
from minipd.ir.program import Program
from minipd.ir.trace import Trace
from minipd.ir.verify import verify
from minipd.ops.complex import conj
from tests.ops.case import CASES
from tests.ops.test_rows import (
    LIBRARY,
    for_each,
    random_like,
    rows,
    run,
    symbolic_call,
    symbolic_cases,
    to_differentiate,
)


class Traced:
    """A program under construction, with the arrays that its inputs will hold."""

    def __init__(self, bindings=None):
        self.bindings = bindings or {}              # of the symbols in its types, for the run
        self.program = Program()
        self.trace = Trace(self.program)
        self.fed, self.outputs = {}, []

    def input(self, array, wants_gradient=False, meta=None):
        name = f"x{len(self.fed)}"
        self.fed[name] = array
        t = Tensor(self.trace.input(name, array if meta is None else meta, stop_gradient=not wants_gradient))
        t.stop_gradient = not wants_gradient
        return t

    def call(self, name, case, wrt=(), metas=None, attrs=None):
        """(operands, results) of the row's call in the program."""
        xs = [self.input(x, i in wrt, metas and metas[i]) if isinstance(x, np.ndarray) else x
              for i, x in enumerate(case.inputs)]
        with using(ground=self.trace), self.program.constraints.collect():
            out = LIBRARY[name](*xs, **(case.attrs if attrs is None else attrs))
        return xs, list(out) if LIBRARY[name].multi else [out]

    def gradients(self, outs, xs, weights, track=False):
        """(Conjugated as users see them: a program's are transposes, like the rules'.)"""
        with using(ground=self.trace, grad=track):
            seeds = [conj(w).payload for w in weights]
            values = append_backward(self.program, [o.payload for o in outs], [x.payload for x in xs], seeds,
                                     create_graph=track, trace=self.trace)
            return [None if v is None else conj(self.handle(v)) for v in values]

    def handle(self, value):
        t = Tensor(value)
        t.stop_gradient = value.stop_gradient
        return t

    def run(self, tensors):
        """The arrays that these values hold, when the program runs on what was fed; after checking the program."""
        for t in tensors:
            self.outputs.append(f"y{len(self.outputs)}")
            self.trace.build.output(self.outputs[-1], t.payload)
        verify(self.program)
        assert parse(self.program.to_string("exact")) == self.program
        self.program.constraints.check(self.bindings)
        inputs, found = self.fed | self.trace.captures, {}
        evaluate(self.program, self.kernel, lambda op: inputs[op.attributes["name"].value],
                 lambda op, x: found.update({op.attributes["output_name"].value: x}))
        return [found[name] for name in self.outputs[len(self.outputs) - len(tensors):]]

    def kernel(self, row, payloads, attrs):
        return Kernels().run(row, payloads, substitute_all(attrs, self.bindings))


@rows()
def test_a_traced_call_computes_what_the_eager_one_does(name):
    def check(case):
        traced = Traced()
        _, outs = traced.call(name, case)
        for got, want, o in zip(traced.run(outs), run(name, case.inputs, case.attrs), outs, strict=True):
            assert (got.shape, got.dtype) == (o.payload.shape, o.payload.dtype) == (want.shape, want.dtype)
            np.testing.assert_array_equal(got, want)

    for_each([(case,) for case in CASES[name]], check)


def eager(name, case, used, weights, directions):
    """(gradients, second derivatives) of the row's call, by the tape."""
    xs = [Tensor(x) if isinstance(x, np.ndarray) else x for x in case.inputs]
    ws = [Tensor(w) for w in weights]
    wanted = [xs[i] for i in case.differentiable()]
    for t in wanted + ws:
        t.stop_gradient = False
    out = LIBRARY[name](*xs, **case.attrs)
    outs = list(out) if LIBRARY[name].multi else [out]
    gs = grad([outs[i] for i in used], wanted, ws, create_graph=True)
    second = grad(gs, wanted + ws, [Tensor(d) for d in directions], allow_unused=True) if case.smooth else []
    return [g.payload for g in gs], [None if g is None else g.payload for g in second]


@rows(lambda row: row.has_vjp)
def test_gradients_of_the_program_equal_the_tapes(name):
    def check(case, used):
        traced = Traced()
        xs, outs = traced.call(name, case, case.differentiable())
        outs, wanted = [outs[i] for i in used], [xs[i] for i in case.differentiable()]
        weights = random_like([np.empty(o.payload.shape, o.payload.dtype) for o in outs], 1)
        directions = random_like([np.empty(x.payload.shape, x.payload.dtype) for x in wanted], 2)
        ws = [traced.input(w, True) for w in weights]
        gs = traced.gradients(outs, wanted, ws, track=True)
        second = []
        if case.smooth:
            second = traced.gradients(gs, wanted + ws, [traced.input(d) for d in directions])
        want_gs, want_second = eager(name, case, used, weights, directions)
        assert [g is None for g in second] == [g is None for g in want_second]
        reached, want_reached = ([g for g in gs if g is not None] for gs in (second, want_second))
        for got, want in zip(traced.run(gs + reached), want_gs + want_reached, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)

    for_each(to_differentiate(name), check)


@rows(lambda row: row.has_vjp)
def test_a_program_of_symbolic_sizes_runs_at_real_ones(name):
    """Traced once with every size above 1 a symbol, values and gradients are those of the real sizes."""
    def check(case):
        metas, attrs, bindings = symbolic_call(case)
        traced = Traced(bindings)
        xs, outs = traced.call(name, case, case.differentiable(), metas, attrs)
        values = run(name, case.inputs, case.attrs)
        wanted = [xs[i] for i in case.differentiable()]
        used = tuple(i for i, v in enumerate(values) if v.dtype in dtypes.INEXACT)
        weights = random_like([values[i] for i in used], 1)
        ws = [traced.input(w, meta=Meta(outs[i].payload.shape, w.dtype)) for i, w in zip(used, weights, strict=True)]
        gs = traced.gradients([outs[i] for i in used], wanted, ws)
        directions = random_like([case.inputs[i] for i in case.differentiable()], 2)
        want_gs, _ = eager(name, case, used, weights, directions)
        for got, want in zip(traced.run(outs + gs), values + want_gs, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)

    for_each(symbolic_cases(name, lambda case: case.differentiable()), check)
