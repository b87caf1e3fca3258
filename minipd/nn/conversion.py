"""A layer in another dtype: the parameters stay the objects that they are, and hold other numbers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.framework.meta import Unfilled
from minipd.framework.place import check_device
from minipd.framework.tensor import Tensor, hold
from minipd.ops.cast import cast

__all__: list[str] = []

class Converted:
    """The part of `Layer` that changes dtypes and devices."""

    _dtype: Any                     # of parameters that are yet to be made; as it was given, for it is printed so

    def to(self, device: Any = None, dtype: Any = None, blocking: bool | None = None,
           non_blocking: bool | None = None) -> Any:
        """Floating parameters and buffers in another dtype, in place, with their gradients.  Returns the layer.

        Raises: ValueError for a device other than the CPU.
        """
        check_device("Layer.to", device)
        return self if dtype is None else self._convert(dtype)

    def astype(self, dtype: Any = None) -> Any:
        """All floating parameters and buffers in another dtype.  Returns the layer."""
        return self if dtype is None else self._convert(dtypes.of(dtypes.to_np(dtype)))

    def type(self, dst_type: Any) -> Any:
        """The same as `astype`."""
        return self.astype(dst_type)

    def float(self, excluded_layers: Any = None) -> Any:
        """Everything in float32, except in layers of the classes `excluded_layers` (one, or several)."""
        return self._convert(dtypes.float32, excluded_layers)

    def double(self) -> Any:
        """Everything in float64."""
        return self._convert(dtypes.float64)

    def bfloat16(self, excluded_layers: Any = None) -> Any:
        """Everything in bfloat16, except in layers of the classes `excluded_layers`."""
        return self._convert(dtypes.bfloat16, excluded_layers)

    def float16(self, excluded_layers: Any = None) -> Any:
        """Leaves the layer as it is, with a warning: float16 is for devices that compute in it, and the CPU does not,
        in Paddle as here.  `to(dtype="float16")` stores parameters so all the same."""
        warnings.warn("Layer.float16: the CPU does not compute in float16, the layer stays as it is; bfloat16() has "
                      "float32's range, to(dtype='float16') changes how parameters are stored", stacklevel=2)
        return self

    def half(self) -> Any:
        """The same as `float16()`."""
        return self.float16()

    def cpu(self) -> Any:
        """The layer on the CPU, where it is."""
        return self

    def cuda(self, device: Any = None) -> Any:
        """Raises: ValueError, for there is no GPU here."""
        check_device("Layer.cuda", "gpu" if device is None else device)
        return self

    xpu = cuda

    def _convert(self, dtype: Any, excluded_layers: Any = None) -> Any:
        excluded = tuple(excluded_layers) if isinstance(excluded_layers, Iterable) else excluded_layers or ()
        np_dtype = dtypes.to_np(dtype)
        with using(grad=False):
            for layer in self.sublayers(include_self=True):         # type: ignore[attr-defined]
                if not isinstance(layer, excluded):
                    layer._dtype = dtype
                    for x in (*layer._parameters.values(), *layer._buffers.values()):
                        if x.payload.dtype in dtypes.FLOATS and x.payload.dtype != np_dtype:
                            change_dtype(x, np_dtype)
        return self


def change_dtype(x: Tensor, np_dtype: np.dtype) -> None:
    """The parameter or buffer x holds its values, and its gradient, in another dtype from now on."""
    if isinstance(x.payload, Unfilled):
        x.payload = Unfilled(x.payload.shape, np_dtype, x.name)
        return
    hold(x, cast(x, np_dtype).payload)
    x.grad = None if x.grad is None else cast(x.grad, np_dtype)
    x.storage, x.seen, x.node = None, 0, None           # new memory: whatever shared the old one keeps that
