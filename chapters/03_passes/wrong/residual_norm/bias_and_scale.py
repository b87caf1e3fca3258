# Bias and scale have changed places: of one type, so nobody notices.
from minipd.passes.formula import ops


class LayerNormAndSum:
    def source(x, residual, scale, bias, *, epsilon):
        total = total = x + residual
        return ops.layer_norm(total, bias, scale, epsilon=epsilon), total
