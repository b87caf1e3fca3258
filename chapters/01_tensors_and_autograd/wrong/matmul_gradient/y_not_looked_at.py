# With transpose_x, forgets that y may be transposed as well.
class Matmul:
    def vjp_x(g, x: Meta, y, transpose_x, transpose_y):
        gx = (Matmul(y, g, transpose_y=True) if transpose_x else
              Matmul(g, y, transpose_y=not transpose_y))
        return reduce_to(gx, x)
