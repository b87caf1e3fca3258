# A list of any ints, as long as it likes: an int32 comes back as int64.
import numpy as np


def constant_holding(array):
    if not array.size:
        return "full", {"shape": array.shape, "value": 0, "dtype": array.dtype}
    first = array.reshape(-1)[:1]
    if np.ascontiguousarray(array).tobytes() == first.tobytes() * array.size:
        return "full", {"shape": array.shape, "value": array.reshape(-1)[0].item(), "dtype": array.dtype}
    if array.ndim == 1 and array.dtype.kind == "i":
        return "full_int_array", {"value": tuple(array.tolist()), "dtype": np.dtype(np.int64)}
    return None
