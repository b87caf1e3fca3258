"""The kernel dialect: a program in which every operation has its kernel, and every value its place.

    key        which of an operator's kernels: backend, layout, dtype
    types      the types of values that have a place: `cpu_tensor<2x3xf32>`
    table      the kernels there are, by backend
    dialect    the operations: `kernel.add` is a chosen kernel of `pd_op.add`
    lowering   the pass: `pd_op` -> `kernel`
"""

from minipd.executor.kernel.key import KernelKey
from minipd.executor.kernel.lowering import Lowered, pd_op_to_kernel_pass
from minipd.executor.kernel.table import kernels_of, register_array_module, register_kernel, register_transfer, select

__all__ = ["KernelKey", "Lowered", "kernels_of", "pd_op_to_kernel_pass", "register_array_module",
           "register_kernel", "register_transfer", "select"]
