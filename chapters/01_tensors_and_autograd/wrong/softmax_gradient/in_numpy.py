# Right numbers, computed past the tape: a rule that is not made of dispatched operators has no gradient itself.
import numpy as np


class Softmax:
    def vjp_x(g, out, axis):
        g, p = np.asarray(g), np.asarray(out)
        return Tensor((g - (g * p).sum(axis, keepdims=True)) * p)
