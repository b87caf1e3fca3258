# The identity, as it is for the global value: the gradient stays as it came, and may still be parts of a sum.
class Reshard:
    def vjp_x(g, x: Meta, mesh):
        return g
