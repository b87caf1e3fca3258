"""Several kernels of one group, each for a range of sizes; the arrays of a call say which of them runs.

Only sizes that the program leaves open are decided upon here.  The kernel for long rows is built when the first long
row comes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from minipd.cinn.ir.ast import Const, Dim, Expr, Function, viewed_shape
from minipd.cinn.runtime.compiler import Compiler
from minipd.cinn.runtime.kernel import Kernel, Version
from minipd.cinn.runtime.no_elements import Folded

__all__ = ["BucketedKernel"]


class BucketedKernel(Kernel):
    """The kernel for rows of at most `row_at_most` elements, and the one for `longer` ones.

    row: the extents whose product is the length of a row, in terms of the parameters' axes.
    """

    def __init__(self, function: Function, compiler: Compiler, row: tuple[Expr, ...], row_at_most: int,
                 longer: Kernel, folded: Sequence[Folded] = ()) -> None:
        super().__init__(function, compiler, folded)
        self.row, self.row_at_most, self.longer = row, row_at_most, longer

    @functools.cached_property
    def overwritable(self) -> dict[int, tuple[int, ...]]:
        """What both may write over."""
        other = self.longer.overwritable
        found = {r: tuple(i for i in inputs if i in other.get(r, ())) for r, inputs in super().overwritable.items()}
        return {r: inputs for r, inputs in found.items() if inputs}

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> Callable[[], None]:
        return self.longer.bind(inputs, outputs) if self._is_long(inputs, outputs) else super().bind(inputs, outputs)

    def wanted(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> Version | None:
        long = self._is_long(inputs, outputs)
        return self.longer.wanted(inputs, outputs) if long else super().wanted(inputs, outputs)

    def _is_long(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> bool:
        arrays = dict(zip((p.name for p in self.function.params), (*inputs, *outputs), strict=False))
        if len(arrays) != len(self.function.params):
            return False                        # `bind` says what is wrong
        return math.prod(self._extent(e, arrays) for e in self.row) > self.row_at_most

    def _extent(self, e: Expr, arrays: dict[str, np.ndarray]) -> int:
        if isinstance(e, Const):
            return int(e.value)
        assert isinstance(e, Dim)
        return viewed_shape(self.function.param(e.param), arrays[e.param].shape)[e.axis]
