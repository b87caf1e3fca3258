# Finds the first element, and takes the following ones; a window's rows are not neighbours in the whole array.
def _runs(shape, window):
    whole, offsets = window if window is not None else (shape, (0,) * len(shape))
    _check_window(shape, whole, offsets)
    start, stride = 0, 1
    for total, offset in zip(reversed(whole), reversed(offsets)):
        start += offset * stride
        stride *= total
    return np.array([start], np.int64), int(np.prod(shape))
