# Subtracts 1 where it should subtract the gradient of the loss.
def _loss_grad_into(xp, out, label, softmax, loss_grad, ignore_index, axis, window):
    valid = label != ignore_index
    g = xp.where(valid, loss_grad, softmax.dtype.type(0))
    xp.multiply(softmax, g, out=out)
    rows, owned = local_rows(xp, xp.where(valid, label, 0), softmax, axis, window, "expected labels", "classes of")
    if softmax.shape[axis]:
        at_label = xp.take_along_axis(out, rows, axis) - (valid * 1.0 if owned is None else valid * owned)
        xp.put_along_axis(out, rows, at_label.astype(out.dtype), axis)
