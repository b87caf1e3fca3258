"""Making parameters: eagerly, or lazily under LazyGuard."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.context import Kernels, MetaOnly, using
from minipd.framework.meta import Meta, Unfilled
from minipd.framework.rank import current
from minipd.framework.tensor import Parameter, Tensor
from minipd.nn.initializer import Constant, Initializer, XavierUniform
from minipd.nn.initializer.base import chosen
from minipd.nn.param_attr import ParamAttr
from minipd.ops.creation import shape_tuple

__all__ = ["LazyGuard", "create_parameter"]


def create_parameter(shape: Any, dtype: Any = None, name: str | None = None, attr: Any = None, is_bias: bool = False,
                     default_initializer: Initializer | None = None) -> Parameter:
    """Paddle's `create_parameter`: a leaf that wants a gradient, with first values.

    dtype: the default dtype unless given.  The initializer is `attr`'s, else the global one
    (`initializer.set_global_initializer`), else `default_initializer`, else zeros for a bias and XavierUniform for a
    weight.  The n-th parameter to be created draws from the n-th stream of random numbers, whatever the others are
    filled with.

    >>> create_parameter([2], is_bias=True).tolist()
    [0.0, 0.0]
    """
    attr = ParamAttr.of(attr)
    ctx = current()
    initializer = chosen(attr.initializer, default_initializer, is_bias) or (
        Constant(0.0) if is_bias else XavierUniform())
    if not hasattr(initializer, "values"):
        raise TypeError(f"create_parameter: expected an Initializer, got {initializer!r}")
    p = Parameter(Meta((), dtypes.float32.np))          # until it has its own
    p.name = attr.name or name or parameter_name(ctx.unique_name("create_parameter"), is_bias)
    p.need_clip, p.regularizer, p.trainable = attr.need_clip, attr.regularizer, attr.trainable
    p.optimize_attr = {"learning_rate": attr.learning_rate}
    np_dtype = dtypes.get_default_dtype_np() if dtype is None else dtypes.to_np(dtype)
    p.payload = Unfilled(shape_tuple("create_parameter", shape), np_dtype, p.name)
    p.initialize = _Fill(p, initializer, ctx.rng.init_key())
    ctx.ground.parameter_made(p)
    return p


def parameter_name(owner: str, is_bias: bool) -> str:
    """The next name of a parameter of `owner`: `linear_0.w_0`."""
    return current().unique_name(f"{owner}.{'b' if is_bias else 'w'}")


class _Fill:
    """How a parameter gets its values: what `Parameter.initialize` is until then."""

    def __init__(self, param: Parameter, initializer: Initializer, key: Any):
        self.param, self.initializer, self.key = param, initializer, key

    def values(self) -> Tensor:
        """The first values, computed by the interpreters that are in force."""
        meta = self.param.payload
        return self.initializer.values(Tensor(self.key), tuple(meta.shape), meta.dtype)

    def __call__(self, window: tuple | None = None) -> None:
        """Fill the parameter, or with `window` = (global shape, offsets, local shape) that part of it.

        Parameters are made once and are no part of a program: their values are computed at once, below every layer of
        interpreters, except where only shapes and dtypes are reckoned.
        """
        p, meta = self.param, self.param.payload
        shape, part = tuple(meta.shape), None
        if window is not None:
            whole, offsets, local = map(tuple, window)
            if whole != shape:
                raise ValueError(f"initialize of {p.name}: expected a window of global shape {list(shape)}, got "
                                 f"{list(whole)}")
            shape, part = local, None if local == whole else (whole, offsets)
        ground = current().ground
        with using(ground=ground if isinstance(ground, MetaOnly) else Kernels(), middle=None, amp=None, grad=False):
            p.payload = self.initializer.values(Tensor(self.key), shape, meta.dtype, part).payload
        p.initialize = None


class LazyGuard:
    """Paddle's `LazyGuard`: parameters made inside have a shape and a dtype, and no memory until they are filled.

    `param.initialize()` fills one; `shard_tensor` fills the part that this rank keeps.  Both give what the parameter
    would have held if it had been made at once.

    >>> from minipd.nn import Linear
    >>> with LazyGuard():
    ...     layer = Linear(2, 3)
    >>> layer.weight.payload
    f32[2, 3]
    >>> for p in layer.parameters():
    ...     p.initialize()
    >>> layer.bias.tolist()
    [0.0, 0.0, 0.0]
    """

    def __enter__(self) -> None:
        self.before = current().lazy_init
        current().lazy_init = True

    def __exit__(self, *exc: object) -> None:
        current().lazy_init = self.before
