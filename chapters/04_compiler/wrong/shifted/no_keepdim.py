# The axis is dropped: in a square, each row is shifted by the maxima of all of them.
from minipd.framework.dim import same
from minipd.ops.reduce import Max


def shifted(x, axis):
    if same(x.payload.shape[axis], 0):
        return x
    return x - Max(x, axis=(axis,), keepdim=False)
