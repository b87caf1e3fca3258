# Looks up the logit of label -100, of which there is none.
@decompose_rule("cross_entropy_with_softmax")
def cross_entropy_with_softmax(logits, label, *, ignore_index=-100, axis):
    z = shifted(logits, axis)
    e = exp(z)
    total = Sum(e, axis=(axis,), keepdim=True)
    return e / total, where(label != ignore_index, log(total) - TakeAlongAxis(z, label, axis=axis), 0.0)
