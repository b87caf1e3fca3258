"""The kernels there are, and how one is chosen.

A row of the operator table brings its kernels for the CPU.  Whoever has kernels for another backend registers them,
for the dtypes that they are for; nothing falls back from one backend to another without being told to:

    register_kernel("add", "GPU", kernel=cupy.add)

Chosen is by key: the backend is that of the place that the program is lowered for, the dtype that of the operand that
the row names for it (`row.key`).  A kernel that is registered for any layout or any dtype serves all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from minipd.executor.kernel.key import KernelKey
from minipd.framework import dtype as dtypes
from minipd.framework.row import ROWS, Row, ufunc_of

__all__ = ["kernels_of", "register_array_module", "register_kernel", "register_transfer", "select"]

ALL_LAYOUT, ALL_DTYPE = "ALL_LAYOUT", "ALL_DTYPE"
CPU = "CPU"


class Kernels(NamedTuple):
    """kernel: returns its result.  kernel_out: writes it into a given buffer.  One of the two may be None."""

    kernel: Callable | None
    kernel_out: Callable | None


#: row -> key -> kernels, of backends other than the CPU
REGISTERED: dict[str, dict[KernelKey, Kernels]] = {}
#: backend -> the functions that move arrays, by operation
TRANSFERS: dict[str, dict[str, Callable]] = {}


def register_kernel(row_name: str, backend: str, kernel: Callable | None = None, kernel_out: Callable | None = None,
                    layout: str = ALL_LAYOUT, dtypes: Iterable[Any] = (ALL_DTYPE,)) -> None:
    """Add kernels of a row for a backend.

    kernel: `kernel(*operands, **attrs)` returns the result, or a tuple of results.  kernel_out: `kernel_out(out,
    *operands, **attrs)` writes into a buffer, or a tuple of buffers.  dtypes: of the operand that selects the kernel.
    Raises: KeyError if there is no such row; ValueError without any function, for the CPU (whose kernels stand in the
    row), and for a key that has kernels already.
    """
    if row_name not in ROWS:
        raise KeyError(f"register_kernel: no row {row_name!r}; rows are written with @op in minipd/ops")
    if kernel is None and kernel_out is None:
        raise ValueError(f"register_kernel, {row_name}: expected kernel, kernel_out or both, got neither")
    if backend == CPU:
        raise ValueError(f"register_kernel, {row_name}: expected another backend than the CPU, whose kernel stands in "
                         "the row")
    found = REGISTERED.setdefault(row_name, {})
    for dtype in dtypes:
        key = KernelKey(backend, layout, dtype if dtype == ALL_DTYPE else _name(dtype))
        if key in found:
            raise ValueError(f"register_kernel: {row_name} has kernels for {key} already")
        found[key] = Kernels(kernel, kernel_out)


def kernels_of(row_name: str) -> list[KernelKey]:
    """The keys for which a row has kernels.

    >>> kernels_of("add")
    [<backend:CPU|layout:ALL_LAYOUT|dtype:ALL_DTYPE>]
    """
    row = ROWS[row_name]
    own = [KernelKey(CPU, ALL_LAYOUT, ALL_DTYPE)] if row.kernel is not None else []
    return own + list(REGISTERED.get(row_name, ()))


def select(row: Row, key: KernelKey) -> Kernels:
    """The kernels of a row for a key.

    Raises: NotImplementedError if there are none, with those that there are.
    """
    if key.backend == CPU and row.kernel is not None:
        if row.comm or key.np is None:
            return Kernels(row.kernel, row.kernel_out)
        code = dtypes.of(key.np).code
        return Kernels(row.kernels[code], row.kernel_outs[code])
    found = REGISTERED.get(row.name, {})
    for layout in (key.layout, ALL_LAYOUT):
        for dtype in (key.dtype, ALL_DTYPE):
            kernels = found.get(KernelKey(key.backend, layout, dtype))
            if kernels is not None:
                return kernels
    there = ", ".join(map(repr, kernels_of(row.name))) or "none at all"
    raise NotImplementedError(f"kernel of {row.dialect}.{row.name}: expected one for {key}, got none; there are {there}"
                              f". Register one with register_kernel({row.name!r}, {key.backend!r}, ...), or run on "
                              "another place")


def register_transfer(backend: str, to_device: Callable, to_host: Callable) -> None:
    """How arrays come to a backend's memory, and back: functions of one array that return another.

    Without it, the backend is taken to keep numpy's arrays, and a copy is made.
    """
    TRANSFERS[backend] = {"kernel.memcpy_h2d": to_device, "kernel.memcpy_d2h": to_host}


def transfer(name: str, backend: str) -> Callable:
    """The function of `kernel.memcpy_h2d` or `kernel.memcpy_d2h` for a backend."""
    return TRANSFERS.get(backend, {}).get(name, np.array)


def _name(dtype: Any) -> str:
    return dtypes.of(dtypes.to_np(dtype)).name


def register_array_module(backend: str, xp: Any) -> None:
    """Kernels of a backend for every row whose kernel is written for any array module: those of `xp` (cupy's).

    Rows that have kernels for the backend already keep these.
    """
    for row in ROWS.values():
        kernel = None if row.comm else of_module(row, xp)
        if kernel is not None and KernelKey(backend, ALL_LAYOUT, ALL_DTYPE) not in REGISTERED.get(row.name, ()):
            register_kernel(row.name, backend, kernel)


def of_module(row: Row, xp: Any) -> Callable | None:
    """The row's kernel, computing with `xp` in numpy's place; None where it is not written for it."""
    function = ufunc_of(row)
    if function is not None:
        return getattr(xp, function.__name__, None)
    kernel = row.kernel
    if isinstance(kernel, functools.partial) and kernel.args == (np,):
        return functools.partial(kernel.func, xp, **kernel.keywords)
    return None
