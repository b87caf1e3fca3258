# Numbers of 32 bits: they do not reach far into a large array.
def _runs(shape, window):
    whole, offsets = window if window is not None else (shape, (0,) * len(shape))
    _check_window(shape, whole, offsets)
    starts, stride = np.zeros(1, np.int32), 1
    for a in range(len(shape) - 1, -1, -1):
        index = offsets[a] + np.arange(shape[a])
        starts = ((index * stride).astype(np.int32)[:, None] + starts).reshape(-1)
        stride *= whole[a]
    return starts, 1
