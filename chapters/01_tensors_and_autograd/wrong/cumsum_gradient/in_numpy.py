# Right numbers, computed past the tape: a rule that is not made of dispatched operators has no gradient itself.
import numpy as np


class Cumsum:
    def vjp_x(g, axis, exclusive, reverse):
        a = np.asarray(g)
        turned = a if reverse else np.flip(a, axis)
        out = np.cumsum(turned, axis) - (turned if exclusive else 0)
        return Tensor(np.ascontiguousarray(out if reverse else np.flip(out, axis)))
