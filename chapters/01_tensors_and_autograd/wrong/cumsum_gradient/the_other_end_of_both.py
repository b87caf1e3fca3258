# Turns both attributes around; leaving out the element itself is the same seen from either end.
class Cumsum:
    def vjp_x(g, axis, exclusive, reverse):
        return Cumsum(g, axis=axis, exclusive=not exclusive, reverse=not reverse)
