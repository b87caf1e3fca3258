# Takes the mean away first, as a layer norm does.
from minipd.ops.elementary import rsqrt
from minipd.ops.math import square
from minipd.ops.reduce import Mean


def rms_norm(x, scale, *, epsilon=1e-5):
    axis = tuple(range(x.ndim - scale.ndim, x.ndim))
    x = x - Mean(x, axis=axis, keepdim=True)
    return x * rsqrt(Mean(square(x), axis=axis, keepdim=True) + epsilon) * scale
