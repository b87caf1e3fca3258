# A label of -100 is no position: the look-up raises, though the result would be ignored.
from minipd.decomposition.normalizing import shifted
from minipd.ops.elementary import exp, log
from minipd.ops.embedding import TakeAlongAxis
from minipd.ops.math import where
from minipd.ops.reduce import Sum


def cross_entropy_with_softmax(logits, label, *, ignore_index=-100, axis):
    z = shifted(logits, axis)
    e = exp(z)
    total = Sum(e, axis=(axis,), keepdim=True)
    loss = log(total) - TakeAlongAxis(z, label, axis=axis)
    return e / total, where(label != ignore_index, loss, 0.0)
