# The sum is the first output, the norm the second: of one type, so nobody notices.
from minipd.passes.formula import ops


class LayerNormAndSum:
    def source(x, residual, scale, bias, *, epsilon):
        total = total = x + residual
        return total, ops.layer_norm(total, scale, bias, epsilon=epsilon)
