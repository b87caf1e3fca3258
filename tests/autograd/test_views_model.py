"""Views and writes against a model: random programs, whose gradients are right or refused, never silently wrong.

The model is numpy in forward mode: beside each array of values an array of their slopes along one direction, viewed and
written in the same way, so that numpy's own aliasing says what every handle must hold.  The gradient of a result, times
the direction, must be the result's slope.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import minipd as paddle
from minipd.executor import Executor
from minipd.ir.traced import trace
from minipd.ir.verify import verify

SIZE = 5
RNG = np.random.default_rng(0)
STARTS = RNG.normal(size=(2, SIZE))
DIRECTIONS = RNG.normal(size=(2, SIZE))

#: how eager mode refuses what it cannot get right: at the use of a stale view, in the backward pass, at a leaf
MISSED = "its gradient history misses that write"
SAVED = "was saved for the gradient"
LEAF = "which wants a gradient"
#: ... and what a program cannot express
PROGRAM = "a program cannot change a value and keep its history"

VIEWS = {
    "tail": lambda t: t[1:],
    "every other": lambda t: t[::2],
    "reversed": lambda t: t[::-1],
    "column": lambda t: t.reshape((-1, 1)),
    "flat": lambda t: t.reshape((-1,)),
    "everything": lambda t: t[...],
}
PARTS = {
    "all": slice(None),
    "first": slice(0, 1),
    "last": slice(-1, None),
    "every other": slice(None, None, 2),
    "backwards": slice(None, None, -1),
}


class Dual:
    """Values and slopes: what the model's handles are."""

    def __init__(self, values, slopes):
        self.values, self.slopes = values, slopes

    def view(self, f):
        return Dual(f(self.values), f(self.slopes))

    def detach(self):
        return Dual(self.values, np.zeros_like(self.slopes))

    def write(self, part, new):
        self.values[part], self.slopes[part] = new.values, new.slopes

    def write_values(self, part, number):
        self.values[part] = number

    def sin(self):
        return Dual(np.sin(self.values), np.cos(self.values) * self.slopes)

    def sum(self):
        return Dual(self.values.sum(), self.slopes.sum())

    def times(self, other):
        return Dual(self.values * other.values, self.slopes * other.values + self.values * other.slopes)

    def plus(self, other):
        return Dual(self.values + other.values, self.slopes + other.slopes)


def number(value):
    return Dual(np.float64(value), np.float64(0))


class Run:
    """A program on minipd and on the model, side by side: `tensors[i]` and `duals[i]` are the same handle."""

    def __init__(self, x, w):
        self.tensors = [x, w]
        self.duals = [Dual(v.copy(), d.copy()) for v, d in zip(STARTS, DIRECTIONS, strict=True)]
        self.readonly = [False, False]          # what was detached is only read
        self.refused: list[str] = []
        self.compute(0, 1, None)
        self.constant(0, 0, None)
        self.compute(3, 2, None)

    def add(self, tensor, dual, readonly=False):
        self.tensors.append(tensor)
        self.duals.append(dual)
        self.readonly.append(readonly)

    def step(self, name, i, j, what):
        """One step on handles i and j; one that minipd refuses happens on neither side."""
        i, j = i % len(self.tensors), j % len(self.tensors)
        if name.startswith("write") and self.readonly[i]:
            return
        try:
            getattr(self, name)(i, j, what)
        except RuntimeError as error:
            assert any(text in str(error) for text in (MISSED, LEAF, PROGRAM)), error
            self.refused.append(str(error))

    def compute(self, i, j, what):
        (t, u), (a, b) = (self.tensors[i], self.tensors[j]), (self.duals[i], self.duals[j])
        new = t.sin().sum() * u.reshape([-1])
        self.add(new, a.sin().sum().times(b.view(lambda x: x.reshape(-1))))

    def constant(self, i, j, what):
        self.add(paddle.full([SIZE], 0.75, "float64"), Dual(np.full(SIZE, 0.75), np.zeros(SIZE)))

    def view(self, i, j, what):
        f = VIEWS[what]
        self.add(f(self.tensors[i]), self.duals[i].view(f), self.readonly[i])

    def detach(self, i, j, what):
        self.add(self.tensors[i].detach(), self.duals[i].detach(), readonly=True)

    def write(self, i, j, what):
        value = self.tensors[j].sin().sum()
        self.tensors[i][PARTS[what]] = value
        self.duals[i].write(PARTS[what], self.duals[j].sin().sum())

    def write_itself(self, i, j, what):
        self.tensors[i][1:] = self.tensors[i][:-1]
        dual = self.duals[i]
        dual.write(slice(1, None), Dual(dual.values[:-1].copy(), dual.slopes[:-1].copy()))

    def write_constant(self, i, j, what):
        self.tensors[i][PARTS[what]] = 0.5
        self.duals[i].write(PARTS[what], number(0.5))

    def write_without_grad(self, i, j, what):
        with paddle.no_grad():
            self.tensors[i][PARTS[what]] = 0.25
        self.duals[i].write_values(PARTS[what], 0.25)

    def write_in_place(self, i, j, what):
        if what == "tanh":
            self.tensors[i].tanh_()
            t = np.tanh(self.duals[i].values)
            self.duals[i].write(..., Dual(t, (1 - t * t) * self.duals[i].slopes))
        else:
            factor = self.tensors[j].sin().sum()
            self.tensors[i].multiply_(factor)
            self.duals[i].write(..., self.duals[i].times(self.duals[j].sin().sum()))

    def drop(self, i, j, what):
        if i > 1:
            del self.tensors[i], self.duals[i], self.readonly[i]

    def total(self):
        """A number that depends on every handle that may be read, on both sides."""
        total, dual = paddle.to_tensor(0.0, dtype="float64"), number(0.0)
        for n, (t, d) in enumerate(zip(self.tensors, self.duals, strict=True)):
            try:
                part = t.sin().sum()
            except RuntimeError as error:
                assert MISSED in str(error), error
                self.refused.append(str(error))
                continue
            total, dual = total + part * (n + 1.0), dual.plus(d.sin().sum().times(number(n + 1.0)))
        return total, dual


handles = st.integers(0, 7)
steps = st.lists(st.one_of(
    st.tuples(st.sampled_from(["compute", "constant", "detach", "drop", "write_itself"]), handles, handles,
              st.none()),
    st.tuples(st.just("view"), handles, handles, st.sampled_from(sorted(VIEWS))),
    st.tuples(st.sampled_from(["write", "write_constant", "write_without_grad"]), handles, handles,
              st.sampled_from(sorted(PARTS))),
    st.tuples(st.just("write_in_place"), handles, handles, st.sampled_from(["tanh", "multiply"])),
), min_size=1, max_size=12)


def slope(gradients):
    return sum(float((g.numpy() * d).sum()) for g, d in zip(gradients, DIRECTIONS, strict=True) if g is not None)


def check_eager(program):
    leaves = [paddle.to_tensor(v, stop_gradient=False) for v in STARTS]
    run = Run(*leaves)
    for step in program:
        run.step(*step)
        for t, d in zip(run.tensors, run.duals, strict=True):
            np.testing.assert_allclose(t.numpy(), d.values, rtol=1e-12, atol=1e-12)     # stale handles too
    total, dual = run.total()
    np.testing.assert_allclose(total.item(), dual.values, rtol=1e-12, atol=1e-12)
    try:
        gradients = paddle.grad(total, leaves, allow_unused=True)
    except RuntimeError as error:
        assert SAVED in str(error), error
        event("refused in the backward pass")
        return
    event("right, with steps refused" if run.refused else "right")
    np.testing.assert_allclose(slope(gradients), dual.slopes, rtol=1e-9, atol=1e-9)


@settings(max_examples=100)
@given(steps)
def test_eager_programs_are_right_or_refused(program):
    check_eager(program)


@pytest.mark.long
@settings(max_examples=1000)
@given(steps)
def test_many_eager_programs_are_right_or_refused(program):
    check_eager(program)


def check_traced(program):
    """The same programs, traced: mutation lives in bindings there, so nothing is stale and nothing is overwritten."""
    seen = {}

    def f(x, w):
        run = seen["run"] = Run(x, w)
        for step in program:
            run.step(*step)
        total, seen["dual"] = run.total()
        gradients = paddle.grad(total, [x, w], allow_unused=True)
        return run.tensors, total, [paddle.zeros([SIZE], "float64") if g is None else g for g in gradients]

    traced = trace(f, *(paddle.to_tensor(v, stop_gradient=False) for v in STARTS))
    found = Executor(verify(traced.program)).run(dict(zip(traced.inputs, STARTS, strict=True)) | traced.captures)
    values, total, gradients = traced.structure.rebuild([found[name] for name in traced.outputs])
    run, dual = seen["run"], seen["dual"]
    for value, d in zip(values, run.duals, strict=True):
        np.testing.assert_allclose(value, d.values, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(total, dual.values, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sum((g * d).sum() for g, d in zip(gradients, DIRECTIONS, strict=True)), dual.slopes,
                               rtol=1e-9, atol=1e-9)
    assert not any(MISSED in text for text in run.refused)
    event("right, with steps refused" if run.refused else "right")


@settings(max_examples=40)
@given(steps)
def test_traced_programs_are_right(program):
    check_traced(program)


@pytest.mark.long
@settings(max_examples=400)
@given(steps)
def test_many_traced_programs_are_right(program):
    check_traced(program)
