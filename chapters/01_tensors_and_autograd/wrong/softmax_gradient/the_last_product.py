# Forgets the last factor: p_i (g_i - sum) without the p_i.
class Softmax:
    def vjp_x(g, out, axis):
        return g - Sum(g * out, axis=(axis,), keepdim=True)
