# Adds up from the beginning, as the forward pass does; but the first element is in all sums, and the last in one.
class Cumsum:
    def vjp_x(g, axis, exclusive, reverse):
        return Cumsum(g, axis=axis, exclusive=exclusive, reverse=reverse)
