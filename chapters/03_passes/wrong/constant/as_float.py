# The number goes through a float: an int beyond 2^53 comes back as another.
import numpy as np

from minipd.passes.library.constant_folding import MAX_LISTED


def constant_holding(array):
    if not array.size:
        return "full", {"shape": array.shape, "value": 0, "dtype": array.dtype}
    first = array.reshape(-1)[:1]
    if np.ascontiguousarray(array).tobytes() == first.tobytes() * array.size:
        return "full", {"shape": array.shape, "value": float(first[0]), "dtype": array.dtype}
    if array.ndim == 1 and array.dtype == np.int64 and array.size <= MAX_LISTED:
        return "full_int_array", {"value": tuple(array.tolist()), "dtype": array.dtype}
    return None
