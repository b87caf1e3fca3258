"""`paddle.base.core`: classes by the name of the library that defines them in Paddle.  (Those of distributed tensors
come with `minipd.dist`.)"""

from minipd.framework.memory import VarType
from minipd.framework.place import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place, XPUPlace

__all__ = ["CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "Place", "VarType", "XPUPlace"]
