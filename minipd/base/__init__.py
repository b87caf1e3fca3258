"""`paddle.base`: older paths of names, which scripts still use.  (Those of programs come with `minipd.static`.)"""

from minipd.autograd.engine import grad
from minipd.autograd.mode import no_grad
from minipd.base import core, dygraph, unique_name
from minipd.framework.flags import get_flags, set_flags
from minipd.framework.mode import in_dynamic_mode
from minipd.framework.place import CPUPlace, CUDAPinnedPlace, CUDAPlace, XPUPlace, is_compiled_with_cuda
from minipd.framework.tensor import Tensor

__all__ = ["CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "Tensor", "XPUPlace", "core", "dygraph", "get_flags", "grad",
           "in_dynamic_mode", "is_compiled_with_cuda", "no_grad", "set_flags",
           "unique_name"]
