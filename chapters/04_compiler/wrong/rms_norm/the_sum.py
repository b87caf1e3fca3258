# Divides by the root of the sum of the squares, not of their mean.
from minipd.ops.elementary import rsqrt
from minipd.ops.math import square
from minipd.ops.reduce import Sum


def rms_norm(x, scale, *, epsilon=1e-5):
    axis = tuple(range(x.ndim - scale.ndim, x.ndim))
    return x * rsqrt(Sum(square(x), axis=axis, keepdim=True) + epsilon) * scale
