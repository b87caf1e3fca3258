# With transpose_x the product saw x^T, so this is the gradient of x^T; it must be turned back.
class Matmul:
    def vjp_x(g, x: Meta, y, transpose_x, transpose_y):
        return reduce_to(Matmul(g, y, transpose_y=not transpose_y), x)
