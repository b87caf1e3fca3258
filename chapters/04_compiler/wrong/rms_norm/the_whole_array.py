# One mean over all of x, not one for each row.
from minipd.ops.elementary import rsqrt
from minipd.ops.math import square
from minipd.ops.reduce import Mean


def rms_norm(x, scale, *, epsilon=1e-5):
    return x * rsqrt(Mean(square(x), axis=tuple(range(x.ndim)), keepdim=True) + epsilon) * scale
