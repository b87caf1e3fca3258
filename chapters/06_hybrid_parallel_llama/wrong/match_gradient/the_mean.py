# Parts are taken for an average: right where each rank divides by its own number of tokens, half of it here.
from minipd.dist.placements import Partial, Replicate


def match(call):
    gradient, like = call.placements
    target = tuple(Replicate() if isinstance(p, Partial) else p for p in like)
    mean = tuple(Partial("avg") if isinstance(g, Partial) and isinstance(t, Replicate) else t
                 for g, t in zip(gradient, target, strict=True))
    return Inferred((mean, like), (target,))
