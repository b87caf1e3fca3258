# Reshapes where channels and images have to change places.
def add_columns(xp, out, columns, paddings, strides, dilations):
    n = out.ndim - 2
    kernel, sizes = columns.shape[1:1 + n], columns.shape[2 + n:]
    shape = [b + d + a for b, d, a in zip(paddings[::2], out.shape[2:], paddings[1::2])]
    total = xp.zeros((out.shape[1], out.shape[0], *shape), columns.dtype)
    for offset in xp.ndindex(*kernel):
        where = tuple(slice(o * d, o * d + (m - 1) * s + 1, s)
                      for o, d, m, s in zip(offset, dilations, sizes, strides))
        total[(slice(None), slice(None), *where)] += columns[(slice(None), *offset)]
    out[...] = total[inside(out.shape[2:], paddings)].reshape(out.shape)
