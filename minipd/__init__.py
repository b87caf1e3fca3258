"""minipd: a deep-learning framework in the shape of Paddle, small enough to read.

`import minipd as paddle` gives Paddle's names.  This file wires the floors (one per chapter) from the bottom up, and is
the only place where importing has side effects.  Package code never imports from here, but from the module that
defines a name.
"""

import os as _os
import sys as _sys
import warnings as _warnings

from minipd.as_paddle import disable_compat as disable_compat
from minipd.as_paddle import enable_compat as enable_compat
from minipd.as_paddle import install_as_paddle as install_as_paddle
from minipd.as_paddle import say_what_is_missing as _say_what_is_missing
from minipd.framework.allocator import keep_freed_memory as _keep_freed_memory
from minipd.framework.boundary import open_to_users as _open_to_users
from minipd.framework.floors import Floor as _Floor
from minipd.framework.floors import wire as _wire
from minipd.ops import FAMILIES as _FAMILIES

__version__ = "0.1.0"

FLOORS = (
    _Floor(1, opens=("framework", "ops", "autograd", "nn", "optimizer", "regularizer", "io", "amp", "profiler",
                    "incubate", "linalg", "metric", "fft", "signal", "tensor", "base", "utils", "hapi",
                    "callbacks", "vision", "viz"),
           exports=("framework.dtype", "framework.printing", "framework.size", "framework.place", "framework.mode",
                    "framework.constants",
                    "framework.tensor", "framework.random", "framework.flags",
                    *(f"ops.{family}" for family in _FAMILIES),
                    "ops.conv", "ops.pooling", "autograd.mode", "autograd.engine", "nn.param_attr", "nn.parameter",
                    "nn.functional.at_root", "nn.data_parallel", "amp.at_root", "io.serialization", "io.reader",
                    "hapi.model", "hapi.summary", "hapi.flops"),
           imports=("ops.methods", "ops.update", "ops.norm", "ops.rope", "autograd.tape", "autograd.methods",
                    "autograd", "nn", "optimizer", "regularizer", "io", "amp", "profiler", "incubate", "linalg",
                    "metric", "fft", "signal", "tensor", "base", "utils", "hapi", "callbacks", "vision")),
    _Floor(2, opens=("ir", "jit", "static", "executor", "pir", "pir_utils", "viz.ir", "viz.executor"),
           imports=("ir", "static", "jit", "pir", "pir_utils", "viz.ir.display")),
    _Floor(3, opens=("passes", "inference", "viz.passes"),
           imports=("passes", "passes.stages", "passes.paddle.names", "inference")),
    _Floor(4, opens=("decomposition", "cinn", "viz.cinn"),
           imports=("decomposition", "cinn.dialect", "cinn.stages", "cinn.passes", "viz.cinn.display")),
    _Floor(5, opens=("dist", "distributed", "viz.dist"),
           imports=("dist.rows", "dist.spmd", "dist.holes", "dist.dialect", "dist.methods", "dist.static.compiled",
                    "distributed", "viz.dist.display")),
    _Floor(6, opens=("parallel", "models", "viz.parallel"), imports=("viz.parallel.display",)),
    _Floor(7, opens=()),
    _Floor(8, opens=("device",)),
    _Floor(9, opens=("planner",)),
)

_names = _wire(__name__, FLOORS, _os.environ)
globals().update({name: _sys.modules.get(f"{__name__}.{name}", value) for name, value in _names.items()})
_keep_freed_memory()
for _name in """CPUPlace CUDAPlace ParamAttr Parameter get_default_dtype get_flags grad in_dynamic_mode load no_grad
             save seed set_default_dtype set_flags""".split():
    if _name in _names:                 # names that `paddle.framework`, which is our ground floor, has too
        setattr(_sys.modules[__name__ + ".framework"], _name, _names[_name])
__all__ = sorted([*_names, "disable_compat", "enable_compat", "install_as_paddle"])

# Infinity and NaN are results like others, here as in Paddle: nobody has asked for numpy's warnings of them.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"minipd\.")

for _module in ("", ".nn", ".nn.functional", ".nn.functional.flash_attention", ".nn.initializer", ".nn.utils",
                ".optimizer", ".optimizer.lr", ".regularizer", ".autograd", ".io", ".amp", ".profiler", ".linalg",
                ".metric", ".fft", ".signal", ".tensor", ".base", ".base.core", ".callbacks", ".incubate",
                ".incubate.autograd", ".vision", ".vision.models", ".inference"):
    if __name__ + _module in _sys.modules:          # its floor is open
        _open_to_users(_sys.modules[__name__ + _module])
        _say_what_is_missing(_sys.modules[__name__ + _module])
