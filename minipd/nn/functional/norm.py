"""Normalisation: over features (layer, group, rms), over the batch, over positions, and by length.

What takes off a mean is `standardize` (`minipd.ops.norm`) over some dimensions, then a scale and a shift per feature.
Low-precision inputs are normalised, scaled and shifted in float32, and rounded once.

data_format: of Paddle's "NCHW" and its likes ("NC", "NCL", "NCDHW", "NLC", "NHWC", "NDHWC") only the place of C
matters: the second dimension, or the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.framework.context import using
from minipd.framework.dim import is_symbolic, prod
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.framework.whole import aligned, whole
from minipd.ops.cast import cast, widened
from minipd.ops.creation import shape_tuple, zeros
from minipd.ops.elementary import rsqrt
from minipd.ops.geometry import channel_axis
from minipd.ops.joining import concat
from minipd.ops.math import add_n, maximum, square
from minipd.ops.matrices.norms import vector_norm
from minipd.ops.norm import Standardize
from minipd.ops.reduce import mean
from minipd.ops.shapes import normalize_axis, require_floating, shapes_agree
from minipd.ops.slicing import slice

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "normalize", "rms_norm"]

def _shaped(x: Tensor, shape: Any) -> Tensor:
    """x itself, where it has the shape: a program has no operation for nothing."""
    return x if tuple(x.payload.shape) == tuple(shape) else x.reshape(shape)


def _scaled_and_shifted(what: str, x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Sequence[Any],
                        features: Any) -> Tensor:
    """x * weight + bias, both of which have `features` elements and are laid out as `shape`, which broadcasts to x."""
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and not shapes_agree((prod(parameter.payload.shape),), (features,),
                                                      f"{what}: the size of {name}"):
            raise ValueError(f"{what}: expected a {name} of {features} elements, one per normalised feature, got "
                             f"{describe(parameter.payload)}")
    if weight is not None:
        x = x * _shaped(cast(weight, x.dtype), shape)
    if bias is not None:
        x = x + _shaped(cast(bias, x.dtype), shape)
    return x


@whole
def layer_norm(x: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None,
               bias: Tensor | None = None, epsilon: float = 1e-5, name: str | None = None) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * weight + bias over the last dimensions.   (Ba, Kiros, Hinton 2016)

    normalized_shape: their sizes (an int: of the last one).  weight, bias: as many elements, in that shape or flat.
    Raises: ValueError if x's last dimensions have other sizes.

    >>> from minipd.ops.creation import to_tensor
    >>> layer_norm(to_tensor([[1.0, 3.0]]), 2, epsilon=0.0).tolist()
    [[-1.0, 1.0]]
    """
    require_floating("layer_norm", x.payload)
    sizes = _last_sizes("layer_norm", x, normalized_shape)
    out, _, _ = Standardize(widened(x), axis=tuple(range(x.ndim - len(sizes), x.ndim)), epsilon=epsilon)
    return cast(_scaled_and_shifted("layer_norm", out, weight, bias, sizes, prod(sizes)), x.payload.dtype)


def _last_sizes(what: str, x: Tensor, normalized_shape: int | Sequence[int]) -> tuple:
    sizes = shape_tuple(what, normalized_shape)
    n = len(sizes)
    if n == 0 or not shapes_agree(tuple(x.payload.shape[-n:]), sizes, what):
        raise ValueError(f"{what}: expected an input whose last dimensions are {list(sizes)}, got shape "
                         f"{list(x.shape)}")
    return sizes


@whole
def group_norm(x: Tensor, num_groups: int, epsilon: float = 1e-5, weight: Tensor | None = None,
               bias: Tensor | None = None, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """Each sample's channels in num_groups groups, each standardised over its channels and all positions.

    x [N, C, ...]; weight, bias [C].   (Wu, He 2018)
    Raises: ValueError if the groups do not divide the channels.

    >>> from minipd.ops.creation import to_tensor
    >>> group_norm(to_tensor([[1.0, 3.0, 10.0, 30.0]]), 2, epsilon=0.0, data_format="NC").tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """
    require_floating("group_norm", x.payload)
    at = channel_axis("group_norm", x, data_format)
    shape = list(x.payload.shape)
    channels = shape[at]
    if num_groups < 1 or channels % num_groups:
        raise ValueError(f"group_norm: expected a number of groups that divides the channels, got num_groups="
                         f"{num_groups} for {channels} channels of {describe(x.payload)}")
    grouped = widened(x).reshape([*shape[:at], num_groups, channels // num_groups, *shape[at + 1:]])
    out, _, _ = Standardize(grouped, axis=tuple(i for i in range(1, grouped.ndim) if i != at), epsilon=epsilon)
    out = _scaled_and_shifted("group_norm", out.reshape(shape), weight, bias, _per_channel(x, at), channels)
    return cast(out, x.dtype)


def _per_channel(x: Tensor, at: int) -> list[int]:
    """The shape of one number per channel, beside x."""
    return [-1 if i == at else 1 for i in range(x.ndim)]


@whole
def batch_norm(x: Tensor, running_mean: Tensor, running_var: Tensor, weight: Tensor | None = None,
               bias: Tensor | None = None, training: bool = False, momentum: float = 0.9, epsilon: float = 1e-5,
               data_format: str = "NCHW", use_global_stats: bool | None = None, name: str | None = None) -> Tensor:
    """Each channel standardised: by the batch's statistics while training, else by the running ones.

    x [N, C, ...]; running_mean, running_var, weight, bias [C].   (Ioffe, Szegedy 2015)
    While training, running = momentum * running + (1 - momentum) * the batch's, in place.  Paddle's running variance
    takes the biased one, and so does this.  Of a tensor that is sharded, the statistics are those of the whole batch.
    use_global_stats: whether to use the running statistics; None: where not training.

    >>> from minipd.ops.creation import to_tensor, ones, zeros
    >>> running = zeros([1]), ones([1])
    >>> batch_norm(to_tensor([[1.0], [3.0]]), *running, training=True, epsilon=0.0).tolist(), running[0].tolist()
    ([[-1.0], [1.0]], [0.20000000298023224])
    """
    require_floating("batch_norm", x.payload)
    at = channel_axis("batch_norm", x, data_format)
    per_channel = _per_channel(x, at)
    x, mean_before, var_before, weight, bias = _following(x, at, running_mean, running_var, weight, bias)
    wide = widened(x)
    if not training if use_global_stats is None else use_global_stats:
        scale = rsqrt(cast(var_before, wide.dtype) + epsilon).reshape(per_channel)
        out = (wide - cast(mean_before, wide.dtype).reshape(per_channel)) * scale
    else:
        out, batch_mean, variance = Standardize(wide, axis=tuple(i for i in range(x.ndim) if i != at), epsilon=epsilon)
        _follow(running_mean, mean_before, batch_mean, momentum)
        _follow(running_var, var_before, variance, momentum)
    out = _scaled_and_shifted("batch_norm", out, weight, bias, per_channel, x.payload.shape[at])
    return cast(out, x.dtype)


def _following(x: Tensor, at: int, *per_channel: Tensor | None) -> Any:
    """x, and what has a number for each of its channels: on a mesh, split as x is."""
    word = "".join("c" if i == at else chr(ord("d") + i) for i in range(x.ndim))
    there = [p for p in per_channel if p is not None]
    x, *there = aligned((word, *"c" * len(there)), x, *there, lead=0)
    placed = iter(there)
    return x, *(None if p is None else next(placed) for p in per_channel)


def _follow(running: Tensor, before: Tensor, batch: Tensor, momentum: float) -> None:
    with using(grad=False):
        new = before * momentum + cast(batch.detach(), running.dtype).reshape(running.payload.shape) * (1.0 - momentum)
        running.set_value(new)


@whole
def instance_norm(x: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
                  weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
                  momentum: float = 0.9, eps: float = 1e-5, data_format: str = "NCHW",
                  name: str | None = None) -> Tensor:
    """Each channel of each sample standardised over its positions.   (Ulyanov, Vedaldi, Lempitsky 2016)

    x [N, C, ...]; weight, bias [C].  As in Paddle, running_mean, running_var, use_input_stats and momentum are accepted
    and have no effect: the statistics are always the input's.

    >>> from minipd.ops.creation import to_tensor
    >>> instance_norm(to_tensor([[[1.0, 3.0], [10.0, 30.0]]]), eps=0.0, data_format="NCL").tolist()
    [[[-1.0, 1.0], [-1.0, 1.0]]]
    """
    require_floating("instance_norm", x.payload)
    at = channel_axis("instance_norm", x, data_format)
    positions = tuple(i for i in range(1, x.ndim) if i != at)
    wide = widened(x)
    out = Standardize(wide, axis=positions, epsilon=eps)[0] if positions else wide * 0.0
    out = _scaled_and_shifted("instance_norm", out, weight, bias, _per_channel(x, at), x.payload.shape[at])
    return cast(out, x.dtype)


def rms_norm(input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, eps: float = 1e-5,
             name: str | None = None) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the last dimensions, whose sizes `normalized_shape` gives.

    Low-precision inputs are normalised in float32 and rounded once before the weight.  (Paddle's function, which runs
    on GPUs only, returns the inverse deviations too.)
    Raises: ValueError if the input's last dimensions have other sizes.

    >>> from minipd.ops.creation import to_tensor
    >>> rms_norm(to_tensor([[3.0, -3.0]]), [2], eps=0.0).tolist()
    [[1.0, -1.0]]
    """
    n = len(_last_sizes("rms_norm", input, normalized_shape))
    x = widened(input)
    x = x * rsqrt(mean(square(x), tuple(range(-n, 0)), keepdim=True) + eps)
    x = cast(x, input.dtype)
    return x if weight is None else x * weight


def local_response_norm(x: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0,
                        data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """x / (k + alpha m)^beta, with m the mean of x^2 over `size` neighbouring channels.   (Krizhevsky et al. 2012)

    The window has size // 2 channels before; beyond the ends are zeros, which count in the mean.
    """
    if size < 1:
        raise ValueError(f"local_response_norm: expected a window of at least 1 channel, got size={size}")
    at = channel_axis("local_response_norm", x, data_format)
    squares = square(x)
    channels, others = x.payload.shape[at], list(x.payload.shape)
    width = [size // 2, (size - 1) // 2]
    if not is_symbolic(channels):                       # farther than all channels there is nothing but zeros
        width = [min(n, channels) for n in width]
    others[at] = sum(width)
    before, after = zeros(others, x.dtype).split(width, at)
    padded = concat([before, squares, after], at)
    window = [slice(padded, [at], [i], [i + channels]) for i in range(sum(width) + 1)]
    return x / (add_n(window) * (alpha / size) + k) ** beta


@whole
def normalize(x: Tensor, p: float = 2, axis: int = 1, epsilon: float = 1e-12, out: Tensor | None = None,
              name: str | None = None) -> Tensor:
    """x / max(|x|_p, epsilon), with the p-norm over `axis`.

    >>> from minipd.ops.creation import to_tensor
    >>> normalize(to_tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    axis = normalize_axis("normalize", axis, x.ndim)
    return x / maximum(vector_norm(x, p, axis, keepdim=True), epsilon)
