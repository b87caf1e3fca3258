# Ignored by a factor of 0: NaN * 0 is NaN, so one bad row that nobody asked for spoils the mean.
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
    loss = log(total) - TakeAlongAxis(z, label * cast(valid, label.dtype), axis=axis)
    return e / total, loss * cast(valid, loss.dtype)
