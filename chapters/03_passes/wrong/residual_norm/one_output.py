# The norm alone: where others read the sum, there is no match.
from minipd.passes.formula import ops


class LayerNormAndSum:
    def source(x, residual, scale, bias, *, epsilon):
        total = total = x + residual
        return ops.layer_norm(total, scale, bias, epsilon=epsilon)
