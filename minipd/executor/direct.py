"""What a call into a buffer comes down to, once its sizes are known: numpy's own function, without a frame of Python's.

A kernel serves every array module, every dtype and every number of dimensions, and asks at each call which of them it
has.  A bound program knows.  `writer` says what is left to call, for the few rows where the asking costs as much as the
work, on small arrays: `f(*operands, out)`, with the same result to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.executor.calls import Call
from minipd.ops.broadcast import axes_to_sum
from minipd.ops.fused.activations import ACTIVATIONS
from minipd.ops.fused.gemm import SMALL

__all__: list[str] = []

Writer = Callable[..., Any]         # f(*operands, out)

#: ufuncs whose third argument is to be no buffer, one day
NAMED_OUT = (np.maximum, np.minimum)
#: dtypes whose products BLAS computes
BLAS = (np.dtype(np.float32), np.dtype(np.float64))
dot: Any = np.ndarray.dot
add_up: Any = np.add.reduce


def writer(call: Call, attrs: dict[str, Any], shapes: Sequence[tuple[int, ...]], out: np.ndarray) -> Writer | None:
    """The function for a call, None where there is nothing better than its kernel.

    shapes: of the operands.  out: a buffer like the one that it will be given.
    """
    if call.kernel_out is None or call.multi or not call.library:
        return None
    name = call.op.name()
    if name == "kernel.matmul":
        return _product(attrs.get("transpose_x", False), attrs.get("transpose_y", False), shapes, out)
    if name == "kernel.fused_gemm_epilogue" and out.nbytes <= SMALL:
        product = _product(attrs.get("trans_x", False), attrs.get("trans_y", False), shapes, out)
        return None if product is None else _with_epilogue(product, attrs.get("activation", "none"))
    if name == "kernel.sum":
        axes, keep = attrs["axis"], attrs.get("keepdim", False)
        return lambda x, out: add_up(x, axes, x.dtype, out, keep)
    if name == "kernel.reduce_as" and len(out.shape) < len(shapes[0]):
        lead = axes_to_sum(shapes[0], out.shape)
        if lead == tuple(range(len(shapes[0]) - len(out.shape))):
            return lambda x, like, out: add_up(x, lead, x.dtype, out)
    if call.ufunc is not None and call.ufunc not in NAMED_OUT:
        return call.ufunc               # a third faster than with `out=`
    return None


def _product(turned_x: bool, turned_y: bool, shapes: Sequence[tuple[int, ...]], out: np.ndarray) -> Writer | None:
    """The product with a matrix."""
    if len(shapes[1]) != 2 or out.dtype not in BLAS or not out.flags.c_contiguous:
        return None
    product = PRODUCTS[turned_x, turned_y]
    if len(shapes[0]) == 2:
        return product
    if turned_x:
        return None
    # as the kernel does: one product instead of one per leading index
    flat, made = (math.prod(shapes[0][:-1]), shapes[0][-1]), (math.prod(out.shape[:-1]), out.shape[-1])
    return lambda x, y, out: product(x.reshape(flat), y, out.reshape(made))


def _with_epilogue(product: Writer, activation: str) -> Writer:
    """The product, its bias and its activation."""
    add, over = np.add, ACTIVATIONS[activation].over

    def biased(x: np.ndarray, y: np.ndarray, bias: np.ndarray, out: np.ndarray) -> None:
        product(x, y, out)
        add(out, bias, out)

    def activated(x: np.ndarray, y: np.ndarray, bias: np.ndarray, out: np.ndarray) -> None:
        product(x, y, out)
        add(out, bias, out)
        over(np, out)
    return biased if activation == "none" else activated


#: the method takes half the time of np.matmul where matrices are small, and computes the same
PRODUCTS: dict[tuple[bool, bool], Writer] = {
    (False, False): dot,
    (True, False): lambda x, y, out: dot(x.T, y, out),
    (False, True): lambda x, y, out: dot(x, y.T, out),
    (True, True): lambda x, y, out: dot(x.T, y.T, out),
}
