"""Whether two programs compute the same: random inputs, a run of each, and where the results part."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from minipd.executor import Executor, Scope
from minipd.framework import dtype as dtypes
from minipd.framework.dim import is_symbolic, substitute_all
from minipd.framework.errors import InputError
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.schema import tensor_operands
from minipd.ir.types import TensorType
from minipd.ir.value import Value

__all__ = ["Outcome", "difference", "outcome", "random_feed", "random_state"]

#: results by name: outputs, and "state <name>" for what is written
Outcome = dict[str, np.ndarray]
#: how far apart results may be where nobody says, in parts of the largest: by the size of the dtype in bytes
TOLERANCES = {2: 2e-2, 4: 1e-5, 8: 1e-9, 16: 1e-9}


def random_feed(program: Program, seed: int = 0, sizes: Mapping[str, int] | None = None) -> dict[str, np.ndarray]:
    """Random inputs: normal floats, 0 and 1 for integers, or ids of all rows where an embedding reads them.

    The numbers of an input depend on its name, shape and the seed, and on no other input.
    sizes: of symbolic dimensions; small ones that the program's assumptions allow, by default.

    >>> from minipd.framework.meta import Meta
    >>> from minipd.ir.traced import trace
    >>> random_feed(trace(lambda x: x, Meta((1, 2), dtypes.float32.np)).program)
    {'input_0': array([[-0.04031505, -1.2653383 ]], dtype=float32)}

    Raises: InputError where sizes that fit are not found, or an input is no tensor.
    """
    inputs = {op.attributes["name"].value: op for op in program.global_block() if op.name() == "pd_op.data"}
    odd = next((op for op in program.global_block() if op.name() == "cf.stack_take"), None)
    if odd is not None:
        raise InputError("a program that is run by itself", f"one that takes {odd.attributes['name'].value!r}, which "
                         "another program leaves", "take the program before its backward was cut off")
    known = _sizes(program, [op.result(0) for op in inputs.values()], dict(sizes or {}))
    return {name: _drawn(name, op, known, seed) for name, op in inputs.items()}


def random_state(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    """Random parameters: weights that keep activations of one size, and positive numbers in vectors, which may be
    variances."""
    found = {}
    for name, value in program.parameters().items():
        rng = _generator(name, seed)
        if value.dtype not in dtypes.INEXACT:
            numbers = np.ones(value.shape)
        elif value.ndim < 2:
            numbers = rng.uniform(0.5, 1.5, value.shape)
        else:
            numbers = rng.standard_normal(value.shape) / np.sqrt(max(1, np.prod(value.shape[1:])))
        found[name] = np.asarray(numbers).astype(value.dtype)
    return found


def outcome(program: Program, feed: Mapping[str, np.ndarray], state: Mapping[str, np.ndarray] | None = None,
            sizes: Mapping[str, int] | None = None) -> Outcome:
    """Run the program; its outputs, and the state that it has written.  `feed` and `state` stay as they are."""
    before = dict(state or {})
    scope = Scope({name: array.copy() for name, array in before.items()})
    with np.errstate(all="ignore"):
        outputs = Executor(program).run(feed, scope, sizes=sizes)
    written = {op.attributes["parameter_name"].value for op in program.walk() if op.name() == "builtin.set_parameter"}
    return {**outputs, **{f"state {name}": scope[name] for name in sorted(written)}}


def difference(want: Outcome, got: Outcome, rtol: float | None = None) -> str | None:
    """Where results part, in words; None where they do not.

    rtol: how far they may be apart, in parts of the largest number of the result; 0 for to the bit; None for
    `TOLERANCES` of the dtype.  NaN is NaN, and an infinity that infinity.

    >>> difference({"y": np.array([1.0, 2.0])}, {"y": np.array([1.0, 2.5])})
    'y[1]: expected 2.0, got 2.5 (1 of 2 numbers differ; the largest difference is 0.25 of the largest number)'
    >>> difference({"y": np.array([0.0])}, {"y": np.array([-0.0])}, rtol=0.0)
    'y[0]: expected 0.0, got -0.0 (1 of 1 numbers differ; the largest difference is 0 of the largest number)'
    """
    if want.keys() != got.keys():
        missing, new = want.keys() - got.keys(), got.keys() - want.keys()
        return f"results: expected {', '.join(want)}, got " + (f"none of {', '.join(sorted(missing))}" if missing else
                                                               f"{', '.join(sorted(new))} too")
    for name, a in want.items():
        b = got[name]
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"{name}: expected {a.dtype}{list(a.shape)}, got {b.dtype}{list(b.shape)}"
        text = _numbers_differ(name, a, b, rtol)
        if text is not None:
            return text
    return None


def _numbers_differ(name: str, a: np.ndarray, b: np.ndarray, rtol: float | None) -> str | None:
    if a.dtype not in dtypes.INEXACT:
        apart, ratio = a != b, None
    else:
        wide = np.complex128 if a.dtype in dtypes.COMPLEX else np.float64
        x, y = a.astype(wide), b.astype(wide)
        nan = np.isnan(x) & np.isnan(y)
        with np.errstate(all="ignore"):
            gap = np.asarray(np.abs(x - y))             # (of single numbers, no array)
        gap[(x == y) | nan] = 0.0
        finite = np.abs(x[np.isfinite(x)])
        largest = finite.max(initial=0.0)
        limit = (TOLERANCES[a.dtype.itemsize] if rtol is None else rtol) * largest
        apart = ~(gap <= limit)                         # a gap of NaN is one
        if rtol == 0 and a.dtype not in dtypes.COMPLEX:
            apart |= (np.signbit(x) != np.signbit(y)) & ~nan
        ratio = gap.max(initial=0.0) / largest if largest else gap.max(initial=0.0)
    if not apart.any():
        return None
    place = tuple(int(i) for i in np.argwhere(apart)[0])
    size = "" if ratio is None else f"; the largest difference is {ratio:.3g} of the largest number"
    where = f"{name}[{', '.join(map(str, place))}]" if place else name
    return f"{where}: expected {a[place]!s}, got {b[place]!s} ({int(apart.sum())} of {a.size} numbers differ{size})"


# ----------------------------------------------------------------------------------------------- drawing
def _generator(name: str, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(name.encode("utf-8", "surrogatepass"))])


def _drawn(name: str, op: Operation, sizes: dict[str, int], seed: int) -> np.ndarray:
    value, rng = op.result(0), _generator(name, seed)
    if not isinstance(value.type(), TensorType):
        raise InputError("inputs that are tensors", f"{name} of type {value.type()}", "give a feed")
    shape = substitute_all(tuple(value.shape), sizes)
    if value.dtype in dtypes.FLOATS:
        return np.asarray(rng.standard_normal(shape)).astype(value.dtype)
    if value.dtype in dtypes.COMPLEX:
        return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(value.dtype)
    return np.asarray(rng.integers(0, _rows(value), shape)).astype(value.dtype)


def _rows(ids: Value) -> int:
    """How many ids there are: the rows of the smallest embedding that reads them, or two."""
    rows = [weight.shape[0] for user in ids.all_used_ops() if user.name() == "pd_op.embedding"
            for weight in tensor_operands(user)[1:2]]
    return min((n for n in rows if isinstance(n, int)), default=2)


def _sizes(program: Program, inputs: list[Value], given: dict[str, int]) -> dict[str, int]:
    """A size for every symbol of the inputs, for which all assumptions hold: different ones if that goes."""
    symbols = sorted({s for v in inputs if isinstance(v.type(), TensorType) for d in v.shape if is_symbolic(d)
                      for s in d.symbols} - given.keys())
    if not symbols:
        return given
    different = {s: 3 + 2 * i for i, s in enumerate(symbols)}
    for attempt in (different, *({s: n for s in symbols} for n in (4, 8, 6, 12, 16, 64, 3, 5, 2, 1))):
        sizes: dict[str, Any] = {**attempt, **given}
        try:
            program.constraints.check(sizes)
            if all(isinstance(d, int) for v in inputs for d in substitute_all(tuple(v.shape), sizes)):
                return sizes
        except (ValueError, KeyError, ArithmeticError):
            continue
    raise InputError(f"sizes of {', '.join(symbols)} for which the assumptions of the program hold",
                     "; ".join(str(c) for c in program.constraints), "give sizes, or a feed")
