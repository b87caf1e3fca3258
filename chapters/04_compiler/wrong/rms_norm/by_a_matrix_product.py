# The numbers are right, but the sum is a matrix product: a library call in the middle, and more bytes.
import math

from minipd.ops.creation import Full
from minipd.ops.elementary import rsqrt
from minipd.ops.linalg import matmul
from minipd.ops.math import square


def rms_norm(x, scale, *, epsilon=1e-5):
    lead = x.ndim - scale.ndim
    n = math.prod(x.shape[lead:])
    rows = square(x).reshape([-1, n])
    ones = Full(shape=(n, 1), value=1.0, dtype=x.payload.dtype)
    mean = (matmul(rows, ones) / float(n)).reshape([*x.shape[:lead], *[1] * scale.ndim])
    return x * rsqrt(mean + epsilon) * scale
