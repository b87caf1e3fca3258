"""What an initializer is, and the ones that layers use where nobody has chosen one."""

from __future__ import annotations

from typing import Any

from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ops.slicing import Slice

__all__ = ["Initializer", "set_global_initializer"]

Window = tuple[tuple[int, ...], tuple[int, ...]]


class Initializer:
    """The base of all initializers.  A subclass defines `values`."""

    def values(self, key: Tensor, shape: tuple, dtype: Any, window: Window | None = None) -> Tensor:
        """The values of a part (see the package); `key`, int64[2], names the draw, dtype is numpy's."""
        raise NotImplementedError(f"{type(self).__name__}: an initializer defines values(key, shape, dtype, window)")

    def __call__(self, param: Tensor, block: Any = None) -> None:
        """Give an existing parameter new first values."""
        key = Tensor(current().rng.init_key())
        param.set_value(self.values(key, tuple(param.payload.shape), param.payload.dtype))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


class Whole(Initializer):
    """Initializers that only know all of a parameter: `whole` makes it, and a part is cut out of it."""

    def whole(self, key: Tensor, shape: tuple, dtype: Any) -> Tensor:
        """The values of a parameter of this (global) shape."""
        raise NotImplementedError

    def values(self, key: Tensor, shape: tuple, dtype: Any, window: Window | None = None) -> Tensor:
        if window is None:
            return self.whole(key, shape, dtype)
        return part_of(self.whole(key, window[0], dtype), shape, window[1])


def part_of(whole: Tensor, shape: tuple, offsets: tuple) -> Tensor:
    """The part of this shape that begins at `offsets`, in memory of its own."""
    return Slice(whole, axes=tuple(range(len(shape))), starts=tuple(offsets),
                 ends=tuple(o + n for o, n in zip(offsets, shape, strict=True))).clone()


def set_global_initializer(weight_init: Initializer | None, bias_init: Initializer | None = None) -> None:
    """From now on parameters start so, unless the user gives a ParamAttr with an initializer: `weight_init` stands for
    what layers would choose for weights, `bias_init` for biases.  None: the layer's choice again.

    Raises: TypeError for anything but initializers.
    """
    for given in (weight_init, bias_init):
        if given is not None and not isinstance(given, Initializer):
            raise TypeError(f"set_global_initializer: expected an Initializer or None, got {given!r}")
    current().global_initializers = (weight_init, bias_init)


def chosen(of_attr: Initializer | None, of_layer: Initializer | None, is_bias: bool) -> Initializer | None:
    """Who decides on a parameter's first values: its ParamAttr, else the global initializer, else the layer."""
    return of_attr or current().global_initializers[is_bias] or of_layer
