"""The matcher: seconds for each operation of a program, with 50 rules, as programs grow.

    python benchmarks/passes_matcher.py

Four kinds of programs.  `network`: layers of a decoder, in which ten of the rules find their formulas.  `star`: one
value that everything reads.  `chain`: each operation reads the one before, and the rules fire all along.  `nearly`:
formulas that differ from the rules' in their last operation, operands that commute on the way there.

The rules: ten that fire, and forty that begin like others and want in the end what is not there (there is one of each
operator in every program, so that none of them is out of the question at once).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.program import Program
from minipd.ir.value import Value
from minipd.passes.drr import DrrRule, drr
from minipd.passes.formula import ops
from minipd.passes.pattern import apply_patterns_greedily

SIZES = (1_000, 5_000, 20_000)
#: what forty of the rules want
WANTED = ("sin", "cos", "log", "sqrt", "erf")


class Measured(NamedTuple):
    """One run.  ops: operations of the program before.  seconds: of this process, whoever else is at work."""

    kind: str
    ops: int
    rewrites: int
    seconds: float

    @property
    def microseconds(self) -> float:
        """Per operation of the program."""
        return self.seconds / self.ops * 1e6


# -------------------------------------------------------------------------------------------------------- programs
class Writer(Builder):
    """Calls of rows by name."""

    def __getattr__(self, name: str) -> Callable[..., Value]:
        if name not in ROWS:
            raise AttributeError(name)
        return lambda *values, **attrs: self.call(ROWS[name], [
            v if isinstance(v, Value) else self.full((), v, "float32") for v in values], attrs)[0]


def network(at: Writer, x: Value, size: int) -> Value:
    """Layers of norm, gated unit and residual."""
    weight = at.data("w", (8,), "float32")
    while len(at.block) < size:
        mean = at.mean(at.square(x), axis=(1,), keepdim=True)
        normal = at.multiply(at.multiply(x, at.rsqrt(at.add(mean, 1e-6))), weight)
        gate = at.multiply(normal, at.sigmoid(normal))
        up = at.multiply(gate, at.exp(at.scale(normal, scale=0.5)))
        x = at.add(x, at.tanh(up))
    return x


def star(at: Writer, x: Value, size: int) -> Value:
    """Everything reads x."""
    parts = [at.exp(x)]
    while len(at.block) < size:
        parts += [at.multiply(x, at.sigmoid(x)), at.exp(x)]
    return at.add_n(*parts)


def chain(at: Writer, x: Value, size: int) -> Value:
    """Each reads the one before."""
    while len(at.block) < size:
        x = at.multiply(x, at.sigmoid(x))
    return x


def nearly(at: Writer, x: Value, size: int) -> Value:
    """Products of products, of which the last is another's."""
    while len(at.block) < size:
        y = at.multiply(at.multiply(at.sigmoid(x), x), at.multiply(at.tanh(x), at.exp(x)))
        x = at.add(at.multiply(at.abs(y), y), at.multiply(y, at.sigmoid(at.exp(y))))
    return x


PROGRAMS: dict[str, Callable[[Writer, Value, int], Value]] = {
    "network": network, "star": star, "chain": chain, "nearly": nearly}


def program(kind: str, size: int) -> Program:
    """A program of about `size` operations."""
    made = Program()
    at = Writer(made.global_block())
    x = at.data("x", (4, 8), "float32")
    other = at.data("z", (4, 8), "float32")
    for name in WANTED:
        at.output(name, at.call(ROWS[name], [other], {})[0])
    at.output("y", PROGRAMS[kind](at, x, size))
    return made


# ----------------------------------------------------------------------------------------------------------- rules
def rule(source: Callable, result: Callable, **parts: Any) -> DrrRule:
    return drr()(type(source.__name__, (), {"source": source, "result": result, **parts}))


def ten() -> list[DrrRule]:
    """Rules that fire, each in some of the programs."""
    def rms_norm(x, w, *, axis, epsilon):
        return x * ops.rsqrt(ops.mean(ops.square(x), axis=axis, keepdim=True) + epsilon) * w

    def silu(x):
        return x * ops.sigmoid(x)

    def swiglu(x, y):
        return ops.silu(x) * y

    def exp_scale(x, *, s):
        return ops.exp(ops.scale(x, scale=s))

    def tanh_product(x, y):
        return ops.tanh(x * y)

    def residual(x, y):
        return x + ops.tanh(y)

    def products(a, b, c, d):
        return (a * b) * (c * d)

    def abs_product(y):
        return ops.abs(y) * y

    def exp_twice(x):
        return ops.exp(ops.exp(x))

    def norm_of_norm(x, w, v):
        return ops.rms_norm(ops.rms_norm(x, w), v)
    return [
        rule(rms_norm, lambda x, w, epsilon: ops.rms_norm(x, w, epsilon=epsilon)), rule(silu, lambda x: ops.silu(x)),
        rule(swiglu, lambda x, y: ops.swiglu(x, y), constraint=lambda x, y: x.shape == y.shape),
        rule(exp_scale, lambda x, s: ops.pow(ops.exp(x), s)),
        rule(tanh_product, lambda x, y: -ops.tanh(-(x * y)), constraint=lambda x: x.ndim > 2),
        rule(residual, lambda x, y: x + y, constraint=lambda x: x.ndim > 2),
        rule(products, lambda a, b, c, d: a * b * c * d, constraint=lambda a: a.ndim > 2),
        rule(abs_product, lambda y: ops.square(y), constraint=lambda y: y.ndim > 2),
        rule(exp_twice, lambda x: ops.exp(ops.exp(x)), constraint=lambda x: x.ndim > 2),
        rule(norm_of_norm, lambda x, w, v: ops.rms_norm(x, w * v))]


def forty() -> list[DrrRule]:
    """Rules that begin like what is there, and want at their end what is not."""
    made = []
    for last in WANTED:
        last_op = getattr(ops, last)
        for source in (lambda x, f=last_op: x * ops.sigmoid(f(x)), lambda x, f=last_op: x + ops.tanh(x * f(x)),
                       lambda x, y, f=last_op: (x * y) * (f(x) * y), lambda x, y, f=last_op: x * y + f(x) * y,
                       lambda x, f=last_op: (ops.exp(x), f(x)), lambda x, y, f=last_op: ops.tanh(x * (y * f(y))),
                       lambda x, f=last_op: ops.sigmoid(ops.exp(f(x))), lambda x, y, f=last_op: x * (y + f(x * y))):
            made.append(plain(source, last_op))
    return made


def plain(source: Callable, last: Callable) -> DrrRule:
    """A rule of `source`, whose operator `last` is a default and no parameter."""
    count = source.__code__.co_argcount - 1
    shown = (lambda x: source(x, last)) if count == 1 else (lambda x, y: source(x, y, last))
    return rule(shown, lambda x: (last(x), last(x)))


def measure(sizes: Sequence[int] = SIZES, kinds: Sequence[str] = tuple(PROGRAMS)) -> list[Measured]:
    """Run all rules to their end on each kind of program, of each size."""
    rules = ten() + forty()
    assert len(rules) == 50
    found = []
    for kind in kinds:
        for size in sizes:
            made = program(kind, size)
            number = made.num_ops()
            start = time.process_time()
            rewrites = apply_patterns_greedily(made, rules)
            found.append(Measured(kind, number, rewrites, time.process_time() - start))
    return found


def report(found: Sequence[Measured]) -> str:
    """A table for people."""
    lines = [f"{'program':8} {'operations':>10} {'rewrites':>8} {'seconds':>8} {'us/operation':>12}"]
    lines += [f"{m.kind:8} {m.ops:10} {m.rewrites:8} {m.seconds:8.2f} {m.microseconds:12.1f}" for m in found]
    return "\n".join(lines)


if __name__ == "__main__":
    print(report(measure()))
