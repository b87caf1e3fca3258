"""How the small functions that generated kernels call are compiled: into their caller, with floats as written."""

from __future__ import annotations

from typing import Any

from minipd.framework.numba_setup import numba

__all__: list[str] = []

#: Only contraction to fused multiply-adds: reassociation, which the kernels' own arithmetic allows, would undo the
#: splitting of constants in `math`.  Flags belong to instructions and stay as they are when a call is inlined.
FLAGS = {"contract"}


def inline(function: Any) -> Any:
    """Compile into the caller, where LLVM vectorizes it with the loop around it.

    LLVM inlines the compiled function; numba's own `inline="always"` copies its statements into every caller and types
    them there again, which costs a third more time for each kernel.
    """
    return numba.njit(function, forceinline=True, fastmath=FLAGS, error_model="numpy")
