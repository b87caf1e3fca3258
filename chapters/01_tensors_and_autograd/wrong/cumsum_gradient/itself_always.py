# Counts the gradient of the element's own place, also where the sum leaves the element out.
class Cumsum:
    def vjp_x(g, axis, exclusive, reverse):
        return Cumsum(g, axis=axis, reverse=not reverse)
