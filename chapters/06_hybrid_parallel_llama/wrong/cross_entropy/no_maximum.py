# exp of the logits as they are: 10000 overflows, and the loss is inf or NaN.
@decompose_rule("cross_entropy_with_softmax")
def cross_entropy_with_softmax(logits, label, *, ignore_index=-100, axis):
    e = exp(logits)
    total = Sum(e, axis=(axis,), keepdim=True)
    valid = label != ignore_index
    picked = TakeAlongAxis(logits, label * cast(valid, label.dtype), axis=axis)
    return e / total, where(valid, log(total) - picked, 0.0)
