"""`auto_cast`: the outermost interpreter casts operands, by what is asked of the operator.

    O1   white: low precision.  black: float32.  Others: low precision if all their floats are, else float32.
    O2   black: float32.  Others: the same, and where the model has been given to `decorate` all their floats are low.
    OD   white: low precision.  All others: float32.

A cast is an operator like any other: gradients pass through it and arrive in the parameter's own dtype, and in a traced
function it is part of the program.  Only float32 and low precision are touched, no float64.  While it is off, no
operator call knows of any of this.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from minipd.amp.lists import BLACK, LOOKUPS, WHITE, names
from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.framework.rank import current
from minipd.framework.row import ROWS, Row, Trait
from minipd.framework.tensor import Tensor

__all__ = ["amp_guard", "auto_cast", "get_autocast_cpu_dtype", "get_autocast_dtype",
           "get_autocast_gpu_dtype", "is_autocast_enabled", "is_bfloat16_supported", "is_float16_supported"]

LEVELS = ("O0", "OD", "O1", "O2")
FLOAT32 = dtypes.float32.np
CASTABLE = dtypes.LOW_PRECISION | {FLOAT32}


@dataclass(frozen=True)
class AutoCast:
    """The interpreter: what is cast where.  Equal ones lead to equal programs.

    promote: whether operators on no list take float32 as soon as one of their operands is.
    """

    level: str
    dtype: np.dtype
    white: frozenset[str]
    black: frozenset[str]
    promote: bool = True

    def over(self, handler: Callable) -> Callable:
        """The handler that casts and calls `handler`."""
        cast, modes = ROWS["cast"], dict[Row, str]()

        def casting(row: Row, inputs: Any, attrs: dict) -> Any:
            mode = modes.get(row)
            if mode is None:
                mode = modes[row] = self.mode(row)
            if mode == "as it is":
                return handler(row, inputs, attrs)
            at = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.payload.dtype in CASTABLE
                  and i not in row.shape_only]
            wanted = self.dtype
            if mode == "wide" or mode == "as given" and any(inputs[i].payload.dtype == FLOAT32 for i in at):
                wanted = FLOAT32
            if any(inputs[i].payload.dtype != wanted for i in at):
                inputs = list(inputs)
                for i in at:
                    if inputs[i].payload.dtype != wanted:
                        inputs[i] = handler(cast, (inputs[i],), {"dtype": wanted})
            return handler(row, inputs, attrs)
        return casting

    def mode(self, row: Row) -> str:
        """What is asked of an operator: "low", "wide", "as given" (by its operands together), "as it is"."""
        if row.name in KEPT or Trait.INPLACE in row.traits or Trait.COMM in row.traits or row.dialect != "pd_op":
            return "as it is"
        if row.name in self.white:
            return "low"
        if row.name in self.black:
            return "wide"
        if self.level == "OD":
            return "wide"
        if self.level == "O2" and not self.promote:
            return "low"
        return "as given"


#: operators whose result has the dtype of one operand, whatever the others are
KEPT = frozenset("as_strided assign cast index_add index_put scatter_nd_add set_value share_data_ view_dtype".split())


class auto_cast:
    """Paddle's `amp.auto_cast`: inside, operators compute in low precision where that is safe; also a decorator.

    Args:
        enable: whether to do anything.
        custom_white_list, custom_black_list: names of operators that are on these lists as well.
        level: "O0" (nothing), "O1", "O2" or "OD", as above.
        dtype: "float16" or "bfloat16".
        use_promote: in level O2, let operators on no list take float32 where an operand has it.

    Unlike in Paddle, the CPU is as good a place as any: values are stored in low precision, and computed in float32.
    Raises: ValueError for an unknown level or dtype, or an operator on both custom lists.

    >>> from minipd.ops.creation import ones
    >>> from minipd.ops.linalg import matmul
    >>> x = ones([2, 2])
    >>> with auto_cast(dtype="bfloat16"):
    ...     y = matmul(x, x)
    >>> y.dtype, matmul(x, x).dtype
    (paddle.bfloat16, paddle.float32)
    """

    def __init__(self, enable: bool = True, custom_white_list: Iterable[str] | None = None,
                 custom_black_list: Iterable[str] | None = None, level: str = "O1", dtype: str = "float16",
                 use_promote: bool = True):
        level = level.upper() if isinstance(level, str) else level
        if level not in LEVELS:
            raise ValueError(f"auto_cast: expected level to be one of {', '.join(LEVELS)}, got {level!r}")
        low = dtypes.to_np(dtype)
        if low not in dtypes.LOW_PRECISION:
            raise ValueError(f"auto_cast: expected dtype to be float16 or bfloat16, got {dtype!r}")
        white, black = names(custom_white_list, "custom_white_list"), names(custom_black_list, "custom_black_list")
        if white & black:
            raise ValueError(f"auto_cast: expected an operator on one custom list at most, got {sorted(white & black)} "
                             "on both")
        own = BLACK | LOOKUPS if level == "O1" else LOOKUPS if level == "O2" else frozenset[str]()
        self.amp = None if not enable or level == "O0" else AutoCast(
            level, low, (WHITE | white) - black, (own | black) - white, bool(use_promote))
        self.layers: list[using] = []

    def __enter__(self) -> None:
        self.layers.append(using(amp=self.amp))
        self.layers[-1].__enter__()

    def __exit__(self, *exc: object) -> None:
        self.layers.pop().__exit__(*exc)

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)
        return inside


amp_guard = auto_cast


def is_autocast_enabled(device_type: Any = None) -> bool:
    """Whether this is inside of an `auto_cast`."""
    return current().amp is not None


def get_autocast_dtype(device_type: Any = None) -> str:
    """The low precision of the `auto_cast` around; float16 where there is none."""
    amp = current().amp
    return "float16" if amp is None else dtypes.of(amp.dtype).name


get_autocast_cpu_dtype = get_autocast_gpu_dtype = get_autocast_dtype


def is_float16_supported(device: Any = None) -> bool:
    """Whether `auto_cast` serves float16 here: always, as a format of storage."""
    return True


def is_bfloat16_supported(device: Any = None) -> bool:
    """Whether `auto_cast` serves bfloat16 here: always, as a format of storage."""
    return True
