"""Initializers: the first values of a parameter, as a pure function of a key and of where an element lies.

`values(key, shape, dtype, window)` computes any part of a parameter: `shape` is the part's, and `window` = (global
shape, offsets) says where it lies, None for the whole.  The part equals the same part of the whole bit by bit, so every
mesh starts from the same numbers, and (but for the few that only know the whole) no rank needs more than its shard.
"""

from minipd.nn.initializer.base import Initializer, set_global_initializer
from minipd.nn.initializer.drawn import Normal, TruncatedNormal, Uniform
from minipd.nn.initializer.fans import (
    KaimingNormal,
    KaimingUniform,
    XavierNormal,
    XavierUniform,
    calculate_gain,
)
from minipd.nn.initializer.given import Assign, Bilinear, Constant, Dirac
from minipd.nn.initializer.orthogonal import Orthogonal

__all__ = ["Assign", "Bilinear", "Constant", "Dirac", "Initializer", "KaimingNormal", "KaimingUniform", "Normal",
           "Orthogonal", "TruncatedNormal", "Uniform", "XavierNormal", "XavierUniform", "calculate_gain",
           "set_global_initializer"]
