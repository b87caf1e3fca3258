# The label to ignore becomes class 0, whose loss counts.
from minipd.decomposition.normalizing import shifted
from minipd.ops.cast import cast
from minipd.ops.elementary import exp, log
from minipd.ops.embedding import TakeAlongAxis
from minipd.ops.reduce import Sum


def cross_entropy_with_softmax(logits, label, *, ignore_index=-100, axis):
    z = shifted(logits, axis)
    e = exp(z)
    total = Sum(e, axis=(axis,), keepdim=True)
    valid = label != ignore_index
    return e / total, log(total) - TakeAlongAxis(z, label * cast(valid, label.dtype), axis=axis)
