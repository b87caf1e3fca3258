# Squares in the dtype of the gradient: in float16, 300 squared is infinite.
def sum_of_squares(grads):
    return add_n([sum(square(g)) for g in grads])
