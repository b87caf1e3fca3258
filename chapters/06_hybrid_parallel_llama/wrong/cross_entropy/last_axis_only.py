# Classes are taken to be the last dimension.
@decompose_rule("cross_entropy_with_softmax")
def cross_entropy_with_softmax(logits, label, *, ignore_index=-100, axis):
    axis = logits.ndim - 1
    z = shifted(logits, axis)
    e = exp(z)
    total = Sum(e, axis=(axis,), keepdim=True)
    valid = label != ignore_index
    picked = TakeAlongAxis(z, label * cast(valid, label.dtype), axis=axis)
    return e / total, where(valid, log(total) - picked, 0.0)
