# The logarithm of a probability that was rounded to 0 is -inf; the difference of logits would be exact.
@decompose_rule("cross_entropy_with_softmax")
def cross_entropy_with_softmax(logits, label, *, ignore_index=-100, axis):
    e = exp(shifted(logits, axis))
    softmax = e / Sum(e, axis=(axis,), keepdim=True)
    valid = label != ignore_index
    picked = TakeAlongAxis(softmax, label * cast(valid, label.dtype), axis=axis)
    return softmax, where(valid, -log(picked), 0.0)
