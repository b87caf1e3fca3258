"""Windows as columns and back, as operators: Paddle's unfold and fold, each the other's gradient."""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import exact_div, prod
from minipd.framework.meta import Meta, describe
from minipd.framework.row import op
from minipd.ops.geometry import counts, extent
from minipd.ops.shapes import agree
from minipd.ops.windows import add_columns, columns, padded

__all__: list[str] = []


def _counts(what: str, sizes: tuple, kernel_sizes: tuple, strides: tuple, paddings: tuple, dilations: tuple) -> tuple:
    """How many windows there are along each spatial dimension."""
    return counts(what, sizes, tuple(map(extent, kernel_sizes, dilations)), strides, paddings)


@op("unfold")
class Unfold:
    """Every window of an image as a column: x [N, C, H, W] -> [N, C h w, L], L windows in row-major order."""

    def infer_meta(x, *, kernel_sizes, strides, paddings, dilations):
        sizes = _counts("unfold", x.shape[2:], kernel_sizes, strides, paddings, dilations)
        return Meta((x.shape[0], x.shape[1] * prod(kernel_sizes), prod(sizes)), x.dtype)

    def kernel(xp, x, **attrs):
        out = xp.empty(Unfold.infer_meta(x, **attrs).shape, x.dtype)
        _unfold(xp, out, x, **attrs)
        return out

    def kernel_out(xp, out, x, *, kernel_sizes, strides, paddings, dilations):
        _unfold(xp, out, x, kernel_sizes, strides, paddings, dilations)

    def vjp_x(g, x: Meta, kernel_sizes, strides, paddings, dilations):
        return Fold(g, output_sizes=tuple(x.shape[2:]), kernel_sizes=kernel_sizes, strides=strides, paddings=paddings,
                    dilations=dilations)


def _unfold(xp: Any, out: Any, x: Any, kernel_sizes: tuple, strides: tuple, paddings: tuple, dilations: tuple) -> None:
    sizes = _counts("unfold", x.shape[2:], kernel_sizes, strides, paddings, dilations)
    windows = columns(xp, padded(xp, x, paddings), kernel_sizes, sizes, strides, dilations)
    images = 1 + len(kernel_sizes)                              # the dimension of N in them
    out[...] = xp.moveaxis(windows, images, 0).reshape(out.shape)


@op("fold")
class Fold:
    """The adjoint of unfold: columns x [N, C h w, L] added up where their windows lie -> [N, C, *output_sizes]."""

    def infer_meta(x, *, output_sizes, kernel_sizes, strides, paddings, dilations):
        windows = prod(_counts("fold", output_sizes, kernel_sizes, strides, paddings, dilations))
        if not agree(x.shape[2], windows, "fold: the number of windows"):
            raise ValueError(f"fold: expected x of {windows} columns, the windows of an output of "
                             f"{list(output_sizes)}, got {describe(x)}")
        channels = exact_div(x.shape[1], prod(kernel_sizes), f"fold: channels times {list(kernel_sizes)} in x "
                                                             f"{describe(x)}")
        return Meta((x.shape[0], channels, *output_sizes), x.dtype)

    def kernel(xp, x, **attrs):
        out = xp.empty(Fold.infer_meta(x, **attrs).shape, x.dtype)
        _fold(xp, out, x, **attrs)
        return out

    def kernel_out(xp, out, x, *, output_sizes, kernel_sizes, strides, paddings, dilations):
        _fold(xp, out, x, output_sizes, kernel_sizes, strides, paddings, dilations)

    def vjp_x(g, kernel_sizes, strides, paddings, dilations):
        return Unfold(g, kernel_sizes=kernel_sizes, strides=strides, paddings=paddings, dilations=dilations)


def _fold(xp: Any, out: Any, x: Any, output_sizes: tuple, kernel_sizes: tuple, strides: tuple, paddings: tuple,
          dilations: tuple) -> None:
    sizes = _counts("fold", output_sizes, kernel_sizes, strides, paddings, dilations)
    windows = xp.moveaxis(x.reshape(*out.shape[:2], *kernel_sizes, *sizes), 0, 1 + len(kernel_sizes))
    add_columns(xp, out, windows, paddings, strides, dilations)
