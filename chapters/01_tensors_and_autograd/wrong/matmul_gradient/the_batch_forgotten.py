# x without a batch dimension was broadcast over y's; its gradient is not summed back.
class Matmul:
    def vjp_x(g, y, transpose_x, transpose_y):
        if transpose_x:
            return Matmul(y, g, transpose_x=transpose_y, transpose_y=True)
        return Matmul(g, y, transpose_y=not transpose_y)
