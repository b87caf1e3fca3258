# Two sums: a pattern of three operations, and the program has two.
from minipd.passes.formula import ops


class LayerNormAndSum:
    def source(x, residual, scale, bias, *, epsilon):
        total = total = x + residual
        return ops.layer_norm(x + residual, scale, bias, epsilon=epsilon), total
