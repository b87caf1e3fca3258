# Epsilon is added to the root, not to the mean below it.
from minipd.ops.elementary import sqrt
from minipd.ops.math import square
from minipd.ops.reduce import Mean


def rms_norm(x, scale, *, epsilon=1e-5):
    axis = tuple(range(x.ndim - scale.ndim, x.ndim))
    return x / (sqrt(Mean(square(x), axis=axis, keepdim=True)) + epsilon) * scale
