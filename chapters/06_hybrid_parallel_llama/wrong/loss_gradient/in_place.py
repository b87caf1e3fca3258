# Subtracts in softmax itself, which is saved for a second derivative.
def _loss_grad_into(xp, out, label, softmax, loss_grad, ignore_index, axis, window):
    valid = label != ignore_index
    g = xp.where(valid, loss_grad, softmax.dtype.type(0))
    xp.multiply(softmax, g, out=out)
    before = softmax
    rows, owned = local_rows(xp, xp.where(valid, label, 0), softmax, axis, window, "expected labels", "classes of")
    if softmax.shape[axis]:
        one = xp.take_along_axis(before, rows, axis) - (1.0 if owned is None else owned * 1.0)
        xp.put_along_axis(before, rows, one, axis)
    xp.multiply(before, g, out=out)
