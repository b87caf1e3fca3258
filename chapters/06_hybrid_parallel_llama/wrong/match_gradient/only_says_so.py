# Says that the result is whole, and does not ask for it: the parts are taken for the sum.
from minipd.dist.placements import Partial, Replicate


def match(call):
    gradient, like = call.placements
    target = tuple(Replicate() if isinstance(p, Partial) else p for p in like)
    return Inferred((gradient, like), (target,))
