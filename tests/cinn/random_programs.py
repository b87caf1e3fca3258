"""Random programs as recipes: drawn once, built for any dtype, and computed by numpy, with a bound on float32's error.

A recipe's values are numbered: inputs first, then one for each step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.program import Program

#: half the distance of neighbouring float32 numbers, relative
U32 = 2.0 ** -24


class Step(NamedTuple):
    """kind: unary, binary, reduce, or a change of shape, by name.  of: the numbers of its operands."""

    kind: str
    name: str
    of: tuple[int, ...]
    attrs: dict[str, Any]


@dataclass
class Recipe:
    """The shapes of the inputs, the steps, and the numbers of the values that are wanted."""

    shapes: list[tuple[int, ...]]
    steps: list[Step]
    outputs: list[int]

    def build(self, dtype: np.dtype) -> Program:
        """The program; its inputs are x0, x1 ..., its outputs y0, y1 ..."""
        program = Program()
        build = Builder(program.global_block())
        values = [build.data(f"x{n}", shape, dtype) for n, shape in enumerate(self.shapes)]
        for step in self.steps:
            values.append(_built(build, step, [values[n] for n in step.of], dtype))
        for n, number in enumerate(self.outputs):
            build.output(f"y{n}", values[number])
        return program

    def compute(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """Every value, by numpy in the inputs' dtype."""
        values = list(inputs)
        with np.errstate(all="ignore"):
            for step in self.steps:
                values.append(_computed(step, [values[n] for n in step.of]))
        return values

    def bounded(self, inputs: list[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Every value in float64, and how far one may be from it that float32 arithmetic has given, to first order:
        what the operands' errors become, and what the step's own rounding adds."""
        values = [(x.astype(np.float64), np.zeros(x.shape)) for x in inputs]
        for step in self.steps:
            xs, errors = zip(*(values[n] for n in step.of), strict=True)
            y = _computed(step, list(xs))
            values.append((y, _error(step, xs, errors, y)))
        return values


# ----------------------------------------------------------------------------------------------- what steps mean
class Formula(NamedTuple):
    """numpy's function; how strongly it reacts to a change of its operand, at most near x; its own error in units of
    rounding of the result."""

    function: Callable[..., Any]
    slope: Callable[[np.ndarray], Any] = lambda x: 1.0
    own: float = 1.0


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


UNARY: dict[str, Formula] = {
    "exp": Formula(np.exp, np.exp, 4), "tanh": Formula(np.tanh, own=4), "sigmoid": Formula(_sigmoid, own=8),
    "silu": Formula(lambda x: x * _sigmoid(x), lambda x: 1.2, 12), "sin": Formula(np.sin, own=6),
    "cos": Formula(np.cos, own=6), "square": Formula(np.square, lambda x: 2 * abs(x)),
    "abs": Formula(np.abs, own=0), "relu": Formula(lambda x: np.maximum(x, 0), own=0)}
BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "where": lambda x, y: np.where(x < y, x, y)}
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}
#: what gives exactly the same numbers in every order and in every dtype that can hold them
EXACT = {"unary": ("square", "abs", "relu"), "binary": tuple(BINARY), "reduce": ("sum", "max", "min")}
SMOOTH = {"unary": tuple(UNARY), "binary": ("add", "subtract", "multiply", "maximum", "minimum"),
          "reduce": ("sum", "mean", "max", "min")}


def _computed(step: Step, xs: list[np.ndarray]) -> np.ndarray:
    match step.kind:
        case "unary":
            found = UNARY[step.name].function(xs[0])
        case "binary":
            found = BINARY[step.name](*xs)
        case "reduce":
            found = REDUCTIONS[step.name](xs[0], axis=step.attrs["axis"], keepdims=step.attrs["keepdim"])
        case "expand":
            found = np.broadcast_to(xs[0], step.attrs["shape"])
        case _:
            found = xs[0].reshape(step.attrs["shape"])
    return np.asarray(found).astype(xs[0].dtype)


def _error(step: Step, xs: tuple[np.ndarray, ...], errors: tuple[np.ndarray, ...], y: np.ndarray) -> np.ndarray:
    match step.kind:
        case "unary":
            formula = UNARY[step.name]
            return np.asarray(formula.slope(xs[0]) * errors[0] + formula.own * U32 * np.abs(y))
        case "binary" if step.name == "multiply":
            return np.abs(xs[0]) * errors[1] + np.abs(xs[1]) * errors[0] + U32 * np.abs(y)
        case "binary" if step.name in ("add", "subtract"):
            return errors[0] + errors[1] + U32 * np.abs(y)
        case "binary":
            return np.maximum(*errors)
        case "reduce":
            how: dict[str, Any] = {"axis": step.attrs["axis"], "keepdims": step.attrs["keepdim"]}
            if step.name in ("max", "min"):
                return np.asarray(errors[0].max(**how))
            n = math.prod(xs[0].shape[a] for a in step.attrs["axis"])
            total = errors[0].sum(**how) + n * U32 * np.abs(xs[0]).sum(**how)
            return total if step.name == "sum" else total / n + 2 * U32 * np.abs(y)
    return _computed(step, [errors[0]])


def _built(build: Builder, step: Step, xs: list[Any], dtype: np.dtype) -> Any:
    match step.kind:
        case "binary" if step.name == "where":
            mask, = build.call(ROWS["less_than"], tuple(xs), {})
            return build.call(ROWS["where"], (mask, *xs), {})[0]
        case "reduce":
            y, = build.call(ROWS[step.name], tuple(xs), step.attrs)
            # as Paddle, the sum of small ints is an int64
            return y if y.dtype == dtype else build.call(ROWS["cast"], (y,), {"dtype": dtype})[0]
        case "unary" | "binary":
            return build.call(ROWS[step.name], tuple(xs), {})[0]
        case kind:
            return build.call(ROWS[kind], tuple(xs), step.attrs)[0]


# --------------------------------------------------------------------------------------------------------- drawing
SIZES = [(2, 3, 4), (3, 3, 3), (1, 5, 2), (4, 1, 1), (1, 1, 1), (2, 0, 3), (2, 1, 33), (7, 2, 17)]


@st.composite
def recipes(draw: Any, formulas: dict[str, tuple[str, ...]], most: int = 10) -> Recipe:
    """Values over dimensions of a few sizes, joined at random: element-wise, reductions, broadcasts, shapes."""
    sizes = draw(st.sampled_from(SIZES))
    shapes = [sizes, sizes[1:], sizes[2:], (sizes[0], 1, sizes[2]), (sizes[0], sizes[1], 1), ()]
    inputs = [draw(st.sampled_from(shapes)) for _ in range(3)]
    found: list[tuple[int, ...]] = list(inputs)
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(["unary", "binary", "binary", "reduce", "reduce", "expand", "unsqueeze",
                                     "flatten"]))
        step = _drawn(draw, formulas, found, kind)
        if step is not None:
            steps.append(step)
            found.append(_computed(step, [np.zeros(found[n]) for n in step.of]).shape)
    used = {n for step in steps for n in step.of}
    made = range(len(inputs), len(found))
    more = draw(st.lists(st.sampled_from(made), max_size=2)) if made else []
    outputs = [n for n in made if n not in used] + more
    return Recipe(inputs, steps, list(dict.fromkeys(outputs)))


def _drawn(draw: Any, formulas: dict[str, tuple[str, ...]], shapes: list[tuple[int, ...]], kind: str) -> Step | None:
    number = draw(st.integers(0, len(shapes) - 1))
    shape = shapes[number]
    fitting = [n for n, other in enumerate(shapes) if _broadcasts(shape, other)]
    match kind:
        case "unary":
            return Step(kind, draw(st.sampled_from(formulas[kind])), (number,), {})
        case "binary":
            return Step(kind, draw(st.sampled_from(formulas[kind])), (number, draw(st.sampled_from(fitting))), {})
        case "reduce" if shape and 0 not in shape:
            axes = tuple(n for n in range(len(shape)) if draw(st.booleans())) or (len(shape) - 1,)
            attrs = {"axis": axes, "keepdim": draw(st.booleans())}
            return Step(kind, draw(st.sampled_from(formulas[kind])), (number,), attrs)
        case "expand":
            goal = np.broadcast_shapes(shape, shapes[draw(st.sampled_from(fitting))])
            return Step(kind, "", (number,), {"shape": tuple(map(int, goal))})
        case "unsqueeze" if len(shape) < 4:
            at = draw(st.integers(0, len(shape)))
            return Step("reshape", "", (number,), {"shape": (*shape[:at], 1, *shape[at:])})
        case "flatten" if len(shape) > 1:
            return Step("reshape", "", (number,), {"shape": (shape[0] * shape[1], *shape[2:])})
    return None


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1], strict=False)) and len(a) + len(b) < 9
