# Only the last axis is normalized, also where the scale has two.
from minipd.ops.elementary import rsqrt
from minipd.ops.math import square
from minipd.ops.reduce import Mean


def rms_norm(x, scale, *, epsilon=1e-5):
    return x * rsqrt(Mean(square(x), axis=(x.ndim - 1,), keepdim=True) + epsilon) * scale
