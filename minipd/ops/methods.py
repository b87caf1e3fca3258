"""Tensor methods and operators: a public function whose first parameter is a tensor is a method of Tensor too."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from minipd.framework.boundary import entrance
from minipd.framework.context import using
from minipd.framework.meta import Unfilled, describe
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor, attach, hold
from minipd.framework.views import check_writable, rebind
from minipd.ops import FAMILIES, bitwise, creation, division, indexing, linalg, logic, math, pointwise, scaling
from minipd.ops.cast import cast

__all__: list[str] = []


def _of_a_tensor(function: Any) -> bool:
    """Whether a function's first parameter is a tensor, as its annotation says."""
    first = next(iter(inspect.signature(function).parameters.values()), None)
    return first is not None and first.annotation in ("Tensor", Tensor)


for _family in FAMILIES:
    _module = importlib.import_module(f"minipd.ops.{_family}")
    for _name in _module.__all__:
        if _of_a_tensor(getattr(_module, _name)):
            if _name in vars(Tensor):
                raise TypeError(f"{_module.__name__}.{_name}: Tensor has an attribute of that name already")
            setattr(Tensor, _name, entrance(getattr(_module, _name)))


def _reflected(function: Any) -> Any:
    """`other - x`, where `other` knows no tensors."""
    def operator(self: Tensor, other: Any) -> Any:
        return function(other, self)
    operator.__name__ = function.__name__
    return operator


for _operator, _function in (("add", math.plus), ("sub", math.minus), ("mul", math.multiply), ("truediv", math.over),
                             ("pow", math.pow), ("floordiv", division.floor_divide), ("mod", division.remainder),
                             ("and", bitwise.bitwise_and), ("or", bitwise.bitwise_or), ("xor", bitwise.bitwise_xor),
                             ("lshift", bitwise.bitwise_left_shift), ("rshift", bitwise.bitwise_right_shift),
                             ("matmul", linalg.matmul)):
    setattr(Tensor, f"__{_operator}__", entrance(_function))
    setattr(Tensor, f"__r{_operator}__", entrance(_reflected(_function)))


def _is(self: Tensor, other: Any) -> Any:
    """`x == y`; no tensor equals None, as in Paddle."""
    return False if other is None else logic.equal(self, other)


def _is_not(self: Tensor, other: Any) -> Any:
    return True if other is None else logic.not_equal(self, other)


for _operator, _function in (("eq", _is), ("ne", _is_not), ("lt", logic.less_than),
                             ("le", logic.less_equal), ("gt", logic.greater_than), ("ge", logic.greater_equal),
                             ("invert", bitwise.bitwise_not), ("neg", scaling.neg), ("pos", pointwise.positive),
                             ("abs", math.abs), ("getitem", indexing.getitem), ("setitem", indexing.setitem)):
    setattr(Tensor, f"__{_operator}__", entrance(_function))


def astype(self: Tensor, dtype: Any) -> Tensor:
    """The tensor with another dtype."""
    return cast(self, dtype)


def _iterate(self: Tensor) -> Any:
    """Along the first dimension."""
    return (self[i] for i in range(len(self)))


def transposed(self: Tensor) -> Tensor:
    """All dimensions in reverse order."""
    return self.transpose(tuple(reversed(range(self.ndim))))


def matrix_transposed(self: Tensor) -> Tensor:
    """The last two dimensions exchanged.

    Raises: ValueError if there are fewer.
    """
    if self.ndim < 2:
        raise ValueError(f"mT: expected a tensor of at least 2 dimensions, got {describe(self.payload)}")
    return self.transpose((*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))


def zero_(self: Tensor) -> Tensor:
    """Zeros, in place."""
    check_writable(self, "zero_")
    rebind(self, creation.full_like(self, 0), "zero_")
    return self


def fill_(self: Tensor, value: Any) -> Tensor:
    """The value everywhere, in place."""
    check_writable(self, "fill_")
    rebind(self, creation.full_like(self, value), "fill_")
    return self


def set_value(self: Tensor, value: Any) -> None:
    """The values of another tensor or array, in place; shape, dtype, placements and gradient history stay.

    A parameter that was made lazily is filled by it.
    Raises: ValueError if the shape differs.
    """
    new = value if isinstance(value, Tensor) else creation.to_tensor(value, dtype=self.dtype)
    if tuple(new.payload.shape) != tuple(self.payload.shape):
        raise ValueError(f"set_value of {self.name}: expected shape {list(self.shape)}, got {list(new.shape)}")
    new = cast(new.detach(), self.dtype)
    if isinstance(self.payload, Unfilled):
        hold(self, creation.clone(new).payload)
        self.initialize = None
        return
    if hasattr(self.payload, "placements"):
        new = ROWS["match"](creation.clone(new), self)
    with using(grad=False):
        rebind(self, new, "set_value")


def clear_gradient(self: Tensor, set_to_zero: bool = True) -> None:
    """Let `.grad` be zeros, or None where there is none yet, or if not `set_to_zero`."""
    if self.grad is not None:
        self.grad = creation.zeros_like(self.grad) if set_to_zero else None
    if self.grad is not None:
        self.grad.stop_gradient = False


attach(astype=astype, cast=astype, zero_=zero_, fill_=fill_, set_value=set_value, clear_gradient=clear_gradient,
       clear_grad=clear_gradient, __iter__=_iterate, T=property(transposed), mT=property(matrix_transposed))
