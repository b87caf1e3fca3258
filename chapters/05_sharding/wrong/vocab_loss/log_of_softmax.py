# The logarithm of a probability that has been rounded to 0 is -inf.
from minipd.decomposition.normalizing import shifted
from minipd.ops.cast import cast
from minipd.ops.elementary import exp, log
from minipd.ops.embedding import TakeAlongAxis
from minipd.ops.math import where
from minipd.ops.reduce import Max, Sum


def cross_entropy_with_softmax(logits, label, *, ignore_index=-100, axis):
    e = exp(shifted(logits, axis))
    softmax = e / Sum(e, axis=(axis,), keepdim=True)
    valid = label != ignore_index
    picked = TakeAlongAxis(softmax, label * cast(valid, label.dtype), axis=axis)
    return softmax, where(valid, -log(picked), 0.0)
