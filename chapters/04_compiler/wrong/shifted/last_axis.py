# Always along the last axis.
from minipd.framework.dim import same
from minipd.ops.reduce import Max


def shifted(x, axis):
    if same(x.payload.shape[-1], 0):
        return x
    return x - Max(x, axis=(x.ndim - 1,), keepdim=True)
