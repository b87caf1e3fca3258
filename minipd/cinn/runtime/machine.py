"""Machine code of a kernel, by numba: from a Python function to a C function with an address, and to bytes and back.

numba types the function and makes LLVM's text of it.  Its wrappers, which take Python objects, are left out: a kernel's
arrays are known when a call is bound, so what numba would find out in every call is written down once, as numba's own
structure of an array, and the C function reads that:

    void entry(char **begin, int64 *count, int64 *call, char *arrays)

This is the form of function that numba's threads run.  Each thread gets a range of tasks, begin[0] .. begin[0] +
count[0]; call = [1, phase, tasks] and the arrays are the same for all.  `entry` runs the kernel for each task.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["MachineCode", "array_words", "compiled", "loaded"]

#: Floats may be contracted, and zeros lose their sign.  Never nnan and ninf: NaN and inf mean in a kernel what they
#: mean in numpy.  Not reassoc, which loses them too, but for what `scalar.plus` and `scalar.times` fold.  Not arcp
#: either: with it LLVM computes 1 / sqrt(x) by the processor's estimate and a step of Newton's, which is NaN for 0 and
#: for inf; `numba_source` multiplies by reciprocals where they pay.
FASTMATH = {"contract", "nsz"}

ENTRY = "minipd_entry"


@dataclass(frozen=True)
class MachineCode:
    """A kernel in memory.

    Attributes:
        address: of its C function.
        library: numba's, which owns the memory.
    """

    address: int
    library: Any

    def to_bytes(self) -> bytes:
        return pickle.dumps(self.library.serialize_using_object_code())


def array_words(array: np.ndarray) -> list[int]:
    """numba's structure of an array, in 64-bit words: no owner, then how many elements, of how many bytes, where, and
    the shape and the strides."""
    return [0, 0, array.size, array.itemsize, array.__array_interface__["data"][0], *array.shape, *array.strides]


def compiled(function: Callable[..., None], arrays: Sequence[tuple[np.dtype, int, str]], phases: bool) -> MachineCode:
    """Machine code of a kernel's Python function.

    Args:
        arrays: dtype, axes and layout of each array; layout "C" is contiguous, "A" has any strides.
        phases: whether the number of the phase is the first argument.
    """
    from numba import from_dtype, types
    from numba.core.compiler import Flags, compile_extra
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.cpu_options import FastMathOptions
    from numba.core.registry import cpu_target

    flags: Any = Flags()
    flags.nrt = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
    flags.error_model = "numpy"
    flags.fastmath = FastMathOptions(FASTMATH)
    kind_of: Any = types.Array
    kinds = (*[types.int64] * (3 if phases else 2),
             *(kind_of(from_dtype(dtype), ndim, layout) for dtype, ndim, layout in arrays))
    context = cpu_target.target_context
    with global_compiler_lock:
        cpu_target.typing_context.refresh()
        context.refresh()
        result = compile_extra(cpu_target.typing_context, context, function, kinds, types.void, flags, {})
        library = result.library
        library.add_ir_module(_entry(context, library, result.fndesc, kinds, phases))
        # With no one else to call it, it is not compiled a second time outside of the entry.
        library._final_module.get_function(result.fndesc.llvm_func_name).linkage = "internal"
        library.finalize()
        return MachineCode(library.get_pointer_to_function(ENTRY), library)


def loaded(payload: bytes) -> MachineCode:
    """What `to_bytes` gave, in this process.  Raises: whatever reading bytes of another build of numba may."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    from minipd.framework.numba_setup import name_runtime
    with global_compiler_lock:
        name_runtime()
        library = cpu_target.target_context.codegen().unserialize_library(pickle.loads(payload))
        address = library.get_pointer_to_function(ENTRY)
    if not address:
        raise ValueError(f"it has no function {ENTRY}")
    return MachineCode(address, library)


def _entry(context: Any, library: Any, kernel: Any, kinds: Sequence[Any], phases: bool) -> Any:
    """The C function, as a module of LLVM."""
    from llvmlite import ir
    from numba.core import cgutils, types

    module = library.create_ir_module(ENTRY)
    word, byte = ir.IntType(64), ir.IntType(8)
    words = word.as_pointer()
    signature = ir.FunctionType(ir.VoidType(), [byte.as_pointer().as_pointer(), words, words, byte.as_pointer()])
    entry = ir.Function(module, signature, ENTRY)
    begin, count, call, data = entry.args
    build = ir.IRBuilder(entry.append_basic_block())

    first = build.ptrtoint(build.load(begin), word)
    phase, tasks = (build.load(build.gep(call, [ir.Constant(word, n)])) for n in (1, 2))
    arrays, offset = [], 8
    for kind in kinds[3 if phases else 2:]:
        structure = context.get_value_type(kind)
        place = build.gep(data, [ir.Constant(word, offset)])
        arrays.append(build.load(build.bitcast(place, structure.as_pointer())))
        offset += context.get_abi_sizeof(structure)
    function = context.declare_function(module, kernel)
    with cgutils.for_range(build, build.load(count)) as loop:
        numbers = [build.add(first, loop.index), tasks]
        status, _ = context.call_conv.call_function(
            build, function, types.void, kinds, [*([phase] if phases else []), *numbers, *arrays])
        with cgutils.if_unlikely(build, status.is_error):       # there was no memory for an array of its own
            build.store(ir.Constant(word, 1), build.bitcast(data, words))
    build.ret_void()
    return module
