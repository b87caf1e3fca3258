# Multiplies from the other side: v^T J, which is a gradient, and has the shape of x.
def jvp(func, xs, v=None):
    return vjp(func, xs, v)
