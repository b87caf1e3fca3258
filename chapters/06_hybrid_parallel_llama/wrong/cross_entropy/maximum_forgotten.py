# The sum is of shifted logits, the label's logit is not: they differ by the maximum.
@decompose_rule("cross_entropy_with_softmax")
def cross_entropy_with_softmax(logits, label, *, ignore_index=-100, axis):
    e = exp(shifted(logits, axis))
    total = Sum(e, axis=(axis,), keepdim=True)
    valid = label != ignore_index
    picked = TakeAlongAxis(logits, label * cast(valid, label.dtype), axis=axis)
    return e / total, where(valid, log(total) - picked, 0.0)
