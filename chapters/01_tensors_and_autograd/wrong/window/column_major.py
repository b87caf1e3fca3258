# Numbers the elements down the columns (Fortran's order).
def _runs(shape, window):
    whole, offsets = window if window is not None else (shape, (0,) * len(shape))
    _check_window(shape, whole, offsets)
    numbers = np.arange(int(np.prod(whole)), dtype=np.int64).reshape(whole, order="F")
    part = numbers[tuple(slice(o, o + n) for o, n in zip(offsets, shape))]
    return part.reshape(-1), 1
