# Looks up the logit and its exponential: a message more for each row than needed.
from minipd.decomposition.normalizing import shifted
from minipd.ops.cast import cast
from minipd.ops.elementary import exp, log
from minipd.ops.embedding import TakeAlongAxis
from minipd.ops.math import where
from minipd.ops.reduce import Max, Sum


def cross_entropy_with_softmax(logits, label, *, ignore_index=-100, axis):
    z = shifted(logits, axis)
    e = exp(z)
    total = Sum(e, axis=(axis,), keepdim=True)
    valid = label != ignore_index
    at = label * cast(valid, label.dtype)
    p = TakeAlongAxis(e, at, axis=axis) / total
    loss = where(p > 0.5, -log(p), log(total) - TakeAlongAxis(z, at, axis=axis))
    return e / total, where(valid, loss, 0.0)
