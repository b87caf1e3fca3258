# Steps from row to row by the length of the window's row instead of the whole array's.
import itertools


def _runs(shape, window):
    whole, offsets = window if window is not None else (shape, (0,) * len(shape))
    _check_window(shape, whole, offsets)
    starts = []
    for place in itertools.product(*[range(n) for n in shape]):
        number = 0
        for i, o, n in zip(place, offsets, shape):
            number = number * n + i + o
        starts.append(number)
    return np.array(starts, np.int64), 1
