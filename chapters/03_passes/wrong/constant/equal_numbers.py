# Numbers are compared with ==: [0.0, -0.0] counts as one number everywhere, and [nan, nan] does not.
import numpy as np

from minipd.passes.library.constant_folding import MAX_LISTED


def constant_holding(array):
    if not array.size:
        return "full", {"shape": array.shape, "value": 0, "dtype": array.dtype}
    if (array == array.reshape(-1)[0]).all():
        return "full", {"shape": array.shape, "value": array.reshape(-1)[0].item(), "dtype": array.dtype}
    if array.ndim == 1 and array.dtype == np.int64 and array.size <= MAX_LISTED:
        return "full_int_array", {"value": tuple(array.tolist()), "dtype": array.dtype}
    return None
