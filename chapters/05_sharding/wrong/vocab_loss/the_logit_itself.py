# The logarithm of the shifted sum, but the logit before it was shifted.
from minipd.decomposition.normalizing import shifted
from minipd.ops.cast import cast
from minipd.ops.elementary import exp, log
from minipd.ops.embedding import TakeAlongAxis
from minipd.ops.math import where
from minipd.ops.reduce import Max, Sum


def cross_entropy_with_softmax(logits, label, *, ignore_index=-100, axis):
    e = exp(shifted(logits, axis))
    total = Sum(e, axis=(axis,), keepdim=True)
    valid = label != ignore_index
    picked = TakeAlongAxis(logits, label * cast(valid, label.dtype), axis=axis)
    return e / total, where(valid, log(total) - picked, 0.0)
