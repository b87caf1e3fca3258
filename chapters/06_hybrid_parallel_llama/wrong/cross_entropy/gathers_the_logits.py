# Makes the logits whole on every rank first: right values, at the price of the largest message of the whole model.
from minipd.framework.row import ROWS


@decompose_rule("cross_entropy_with_softmax")
def cross_entropy_with_softmax(logits, label, *, ignore_index=-100, axis):
    if hasattr(logits.payload, "placements"):
        from minipd.dist.placements import Replicate
        mesh = logits.payload.mesh
        logits = ROWS["reshard"](logits, mesh=mesh, placements=(Replicate(),) * mesh.ndim)
    z = shifted(logits, axis)
    e = exp(z)
    total = Sum(e, axis=(axis,), keepdim=True)
    valid = label != ignore_index
    picked = TakeAlongAxis(z, label * cast(valid, label.dtype), axis=axis)
    return e / total, where(valid, log(total) - picked, 0.0)
