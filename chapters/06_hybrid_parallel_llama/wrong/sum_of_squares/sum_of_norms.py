# The sum of the norms, squared: (3 + 4)^2 is 49 and not 25.
from minipd.ops.elementary import sqrt


def sum_of_squares(grads):
    wide = dtypes.float64 if any(g.payload.dtype == dtypes.float64.np for g in grads) else dtypes.float32
    return square(add_n([sqrt(sum(square(cast(g, wide)))) for g in grads]))
