"""Tensor methods and operators: every entry is the public function of the same name."""

from __future__ import annotations

from typing import Any

from minipd.framework.context import using
from minipd.framework.meta import Unfilled, describe
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.framework.views import check_writable, rebind, write
from minipd.ops import (
    activation,
    broadcast,
    creation,
    elementary,
    embedding,
    indexing,
    linalg,
    logic,
    math,
    reduce,
    reshape,
    slicing,
    triangle,
)  # fmt: skip
from minipd.ops.cast import cast
from minipd.ops.joining import split
from minipd.ops.promotion import promoted

__all__: list[str] = []

METHODS = {
    math: "abs add divide maximum minimum multiply neg pow scale square subtract",
    elementary: "cos exp log rsqrt sin sqrt tanh",
    logic: "equal greater_equal greater_than isfinite less_equal less_than not_equal "
           "logical_and logical_not logical_or",
    reduce: "argmax max mean min sum",
    reshape: "flatten reshape squeeze t transpose unsqueeze",
    slicing: "slice strided_slice",
    triangle: "tril triu",
    broadcast: "broadcast_to expand expand_as reduce_as",
    creation: "clone",
    linalg: "matmul",
    embedding: "take_along_axis",
}

for _module, _names in METHODS.items():
    for _name in _names.split():
        setattr(Tensor, _name, getattr(_module, _name))
Tensor.split = split

for _operator, _function in (("add", math.add), ("sub", math.subtract), ("mul", math.multiply),
                             ("truediv", math.divide), ("pow", math.pow), ("matmul", linalg.matmul)):
    setattr(Tensor, f"__{_operator}__", _function)
    setattr(Tensor, f"__r{_operator}__", lambda self, other, function=_function: function(other, self))


def _is(self: Tensor, other: Any) -> Any:
    """`x == y`; no tensor equals None, as in Paddle."""
    return False if other is None else logic.equal(self, other)


def _is_not(self: Tensor, other: Any) -> Any:
    return True if other is None else logic.not_equal(self, other)


def _of_bools(symbol: str, function: Any) -> Any:
    """`&`, `|` and `~` are bitwise in Paddle, which for bool tensors is the logic of truth values."""
    def operator(*xs: Any) -> Any:
        for x in xs:
            if not (isinstance(x, bool) or isinstance(x, Tensor) and x.dtype == "bool"):
                raise TypeError(f"{symbol}: expected bool tensors, got {describe(getattr(x, 'payload', x))}; bitwise "
                                f"operators are not available, for truth values use {function.__name__}")
        return function(*xs)
    return operator


for _operator, _function in (("eq", _is), ("ne", _is_not), ("lt", logic.less_than),
                             ("le", logic.less_equal), ("gt", logic.greater_than), ("ge", logic.greater_equal),
                             ("and", _of_bools("&", logic.logical_and)), ("or", _of_bools("|", logic.logical_or)),
                             ("invert", _of_bools("~", logic.logical_not)),
                             ("neg", math.neg), ("abs", math.abs), ("getitem", indexing.getitem),
                             ("setitem", indexing.setitem)):
    setattr(Tensor, f"__{_operator}__", _function)


def astype(self: Tensor, dtype: Any) -> Tensor:
    """The tensor with another dtype."""
    return cast(self, dtype)


def _iterate(self: Tensor) -> Any:
    """Along the first dimension."""
    return (self[i] for i in range(len(self)))


def transposed(self: Tensor) -> Tensor:
    """All dimensions in reverse order."""
    return self.transpose(tuple(reversed(range(self.ndim))))


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
        self.payload, self.initialize = creation.clone(new).payload, None
        return
    if hasattr(self.payload, "placements"):
        new = ROWS["match"](creation.clone(new), self)
    with using(grad=False):
        rebind(self, new, "set_value")


def _inplace(row: Any) -> Any:
    def method(self: Tensor, *others: Any, **attrs: Any) -> Tensor:
        if others and not isinstance(others[0], Tensor):
            others = (promoted(row.name, self, others[0])[1], *others[1:])
        return write(self, row, *others, **attrs)
    method.__name__ = method.__qualname__ = f"{row.name}_"
    method.__doc__ = f"{row.name}, in place.  Returns the tensor itself."
    return method


for _row in (math.Add, math.Subtract, math.Multiply, math.Divide, elementary.Exp, elementary.Sqrt,
             elementary.Rsqrt, elementary.Tanh,
             activation.Relu, activation.Sigmoid, math.Abs):
    setattr(Tensor, f"{_row.name}_", _inplace(_row))


def scale_(self: Tensor, scale: Any = 1.0, bias: float = 0.0, bias_after_scale: bool = True, act: str | None = None,
           name: str | None = None) -> Tensor:
    """scale * x + bias (or scale * (x + bias)), in place.  Returns the tensor itself."""
    return write(self, math.Scale, **math.scale_attrs(self, scale, bias, bias_after_scale, act))


def clear_gradient(self: Tensor, set_to_zero: bool = False) -> None:
    """Forget `.grad` (or fill it with zeros)."""
    self.grad = creation.zeros_like(self.grad) if set_to_zero and self.grad is not None else None


for _method in (astype, zero_, fill_, scale_, set_value, clear_gradient):
    setattr(Tensor, _method.__name__, _method)
Tensor.cast = astype
Tensor.clear_grad = clear_gradient
Tensor.__iter__ = _iterate
Tensor.T = property(transposed)
