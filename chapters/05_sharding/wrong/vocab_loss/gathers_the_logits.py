# A softmax for its own sake is whole over the classes: all logits are gathered, on every rank.
from minipd.decomposition.normalizing import shifted
from minipd.ops.cast import cast
from minipd.ops.elementary import exp, log
from minipd.ops.embedding import TakeAlongAxis
from minipd.ops.math import where
from minipd.ops.reduce import Max, Sum


def cross_entropy_with_softmax(logits, label, *, ignore_index=-100, axis):
    from minipd.ops.activation import Softmax
    softmax = Softmax(logits, axis=axis)
    z = shifted(logits, axis)
    total = Sum(exp(z), axis=(axis,), keepdim=True)
    valid = label != ignore_index
    picked = TakeAlongAxis(z, label * cast(valid, label.dtype), axis=axis)
    return softmax, where(valid, log(total) - picked, 0.0)
