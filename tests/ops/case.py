"""What one test case of an operator is, and data to make cases of.

`cases(row)` decorates a function that draws the cases of one row; `CASES` has them all by name.
"""

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Case:
    """A call of a row and its answer.

    inputs: float64, complex128, int64 or bool arrays, or Python numbers.  want(*inputs, **attrs): the answer, by
    another way than the kernel's, in float64; a tuple for rows with several results.  symbolic(s): the attributes when
    sizes are symbols, with s(n) for the size n; by default the same attributes.  wrt: the inputs to differentiate; by
    default every float and complex array.  smooth: False where the function has no second derivative.
    fixed: dimensions, as (input, axis), whose size a program has to know.  refused: inputs whose gradient rule says
    that it is not available.  symmetric: inputs that stand for symmetric matrices, of which one triangle is not read:
    what is differentiated is the function of their symmetric part.
    """

    inputs: tuple
    want: Callable[..., Any]
    attrs: dict[str, Any] = field(default_factory=dict)
    symbolic: Callable[[Callable[[int], Any]], dict[str, Any]] | None = None
    wrt: tuple[int, ...] | None = None
    smooth: bool = True
    fixed: tuple[tuple[int, int], ...] = ()
    refused: tuple[int, ...] = ()
    symmetric: tuple[int, ...] = ()

    def __post_init__(self):
        self.inputs = tuple(np.asarray(x) if isinstance(x, np.generic) else x for x in self.inputs)

    @property
    def label(self) -> str:
        shapes = ",".join("x".join(map(str, x.shape)) or "0d" if isinstance(x, np.ndarray) else repr(x)
                          for x in self.inputs)
        attrs = ",".join(f"{k}={v}" for k, v in self.attrs.items() if k not in ("dtype",))
        return f"{shapes};{attrs}".replace(" ", "")

    def differentiable(self) -> tuple[int, ...]:
        if self.wrt is not None:
            return self.wrt
        return tuple(i for i, x in enumerate(self.inputs) if isinstance(x, np.ndarray) and x.dtype.kind in "fc"
                     and i not in self.refused)


CASES: dict[str, list[Case]] = {}
#: rows that also compute on ints ("ints"), on ints and bools ("any"), on floats only, or on float32 and 64 ("wide")
DTYPES: dict[str, str] = {}


def cases(row: str, dtypes: str = "floats") -> Callable:
    def register(draw: Callable[[Data], Iterator[Case]]) -> None:
        CASES[row] = list(draw(Data(row)))
        DTYPES[row] = dtypes
    return register


def also(row: str) -> Callable:
    """More cases of a row that has some."""
    def register(draw: Callable[[Data], Iterator[Case]]) -> None:
        CASES[row] += draw(Data(f"more of {row}"))
    return register


class Data:
    """Random inputs, the same in every run."""

    def __init__(self, name: str):
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def floats(self, *shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
        return np.asarray(self.rng.uniform(low, high, shape))

    def complexes(self, *shape: int) -> np.ndarray:
        """Anywhere around 0, but not near it, nor near the negative real axis, where logarithms jump."""
        size, angle = self.floats(*shape, low=0.5, high=2.0), self.floats(*shape, low=-2.5, high=2.5)
        return np.asarray(size * np.exp(1j * angle))

    def positive(self, *shape: int) -> np.ndarray:
        return self.floats(*shape, low=0.5, high=2.5)

    def distinct(self, *shape: int) -> np.ndarray:
        """No two elements nearer than 0.25, none near 0: away from every kink of max, abs and relu."""
        n = math.prod(shape)
        return np.asarray(((self.rng.permutation(n) - n // 2 + 0.5) * 0.25).reshape(shape))

    def ints(self, high: int, *shape: int) -> np.ndarray:
        return np.asarray(self.rng.integers(0, high, shape))

    def bools(self, *shape: int) -> np.ndarray:
        return np.asarray(self.rng.integers(0, 2, shape).astype(bool))


#: pairs that broadcast: equal, scalars, stretched on either side and on both, size 0, primes
PAIRS = [
    ((), ()), ((3,), (3,)), ((5,), ()), ((), (2, 3)), ((2, 1, 5), (3, 1)), ((7,), (1,)), ((1, 1), (3, 2)),
    ((2, 3), (2, 3)), ((4, 1, 2), (1, 3, 2)), ((0,), (0,)), ((0, 3), (1, 3)), ((3, 1), (3, 0)), ((1,), (0,)),
    ((1,), ()),
]  # fmt: skip

#: the fewest that differ in kind, for the many rows of one family
FEW_PAIRS = [((), ()), ((3,), (3,)), ((2, 1, 4), (3, 1)), ((2, 3), ()), ((0,), (1,))]

SHAPES = [(), (1,), (7,), (2, 3), (3, 1, 2), (0,), (2, 0, 3)]
FEW_SHAPES = [(), (2, 3), (3, 1, 2), (0,)]


def each(f: Callable[..., float]) -> Callable[..., np.ndarray]:
    """f on Python numbers, element by element, broadcast."""
    return np.vectorize(f, otypes=[np.float64])


def binary(f: Callable[[float, float], float], draw: Callable[[Data], Callable], scalars: tuple = (0.7, 2),
           smooth: bool = True, pairs: list = PAIRS) -> Callable[[Data], Iterator[Case]]:
    """Cases of a broadcasting operator of two operands: all pairs of shapes, and Python numbers on either side."""
    def drawn(d: Data) -> Iterator[Case]:
        make = draw(d)
        for a, b in pairs:
            yield Case((make(*a), make(*b)), each(f), smooth=smooth)
        for number in scalars:
            yield Case((make(2, 3), number), each(f), smooth=smooth)
            yield Case((number, make(2, 3)), each(f), smooth=smooth)
        yield Case((make(), scalars[0]), each(f), smooth=smooth)
    return drawn


def unary(f: Callable[[float], float], draw: Callable[[Data], Callable], smooth: bool = True, shapes: list = SHAPES
          ) -> Callable[[Data], Iterator[Case]]:
    def drawn(d: Data) -> Iterator[Case]:
        for shape in shapes:
            yield Case((draw(d)(*shape),), each(f), smooth=smooth)
    return drawn
