# float32 also for float64 gradients: seven digits are left.
def sum_of_squares(grads):
    return add_n([sum(square(cast(g, dtypes.float32))) for g in grads])
