"""Numbers that Paddle gives names."""

import math

__all__ = ["e", "inf", "nan", "newaxis", "pi"]

e, inf, nan, pi = math.e, math.inf, math.nan, math.pi
#: in an index: a new dimension of size 1
newaxis = None
