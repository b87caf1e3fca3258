"""Derivatives of whole functions: jacobian, hessian, vjp, jvp.  A Jacobian is computed row by row, as rows are read.

Everything here is `grad`, called once per row: reverse mode gives a row of a Jacobian for the price of a backward pass.
A column, which is what forward mode gives, comes from reverse mode applied twice (`jvp`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minipd.autograd.engine import as_list, grad
from minipd.framework.context import using
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.ops.creation import ones_like, zeros, zeros_like
from minipd.ops.joining import stack
from minipd.ops.reduce import sum as total

__all__ = ["Hessian", "Jacobian", "hessian", "jacobian", "jvp", "vjp"]


class Jacobian:
    """The derivatives of `ys` by `xs`: `J[i, j]` is d ys[i] / d xs[j]; batched, `J[b, i, j]` that of batch entry b.

    ys: [M] or 0-D, batched [B, M] or [B].  xs: [N] or 0-D, batched [B, N] or [B].  A 0-D operand has no dimension in
    the result.  Nothing is computed before something is read, and then only the rows that are asked for, once.  What is
    read can be differentiated again.  Where a tensor is expected by its methods (`J.numpy()`, `J + 1`), it is one.
    """

    def __init__(self, ys: Tensor, xs: Tensor, batched: bool = False):
        for what, x in (("ys", ys), ("xs", xs)):
            if not isinstance(x, Tensor):
                raise TypeError(f"Jacobian: expected {what} to be a Tensor, got {type(x).__name__}")
            if not batched <= x.ndim <= 1 + batched:
                raise ValueError(f"Jacobian: expected {what} of {batched + 0} or {batched + 1} dimensions"
                                 f"{' with the batch first' if batched else ''}, got {describe(x.payload)}; flatten it "
                                 "before the function, so that it stays differentiable")
        if batched and ys.shape[0] != xs.shape[0]:
            raise ValueError(f"Jacobian: expected ys and xs with one batch size, got {describe(ys.payload)} and "
                             f"{describe(xs.payload)}")
        self._ys, self._xs, self._batched = ys, xs, batched
        self._rows: dict[int, Tensor] = {}

    @property
    def shape(self) -> list:
        batch = list(self._xs.shape[:1]) if self._batched else []
        return batch + list(self._ys.shape[len(batch):]) + list(self._xs.shape[len(batch):])

    def _row(self, i: int) -> Tensor:
        """The derivatives of one element of ys (of one per batch entry): [N], batched [B, N]."""
        if i not in self._rows:
            y, batch = self._ys, int(self._batched)
            if y.ndim > batch:
                y = y[:, i] if batch else y[i]
            self._rows[i] = _grad_or_zeros([total(y)], [self._xs])[0]
        return self._rows[i]

    def _matrix(self, rows: Sequence[int]) -> Tensor:
        batch = int(self._batched)
        if self._ys.ndim == batch:
            return self._row(0)
        if not rows:
            return zeros([*self.shape[:batch], 0, *self._xs.shape[batch:]], self._xs.dtype)
        return stack([self._row(i) for i in rows], batch)

    def __getitem__(self, index: Any) -> Tensor:
        """The elements at an index, as of a tensor; of an unbatched Jacobian, only the rows it names are computed."""
        first, *rest = index if isinstance(index, tuple) else (index,)
        own = self._ys.ndim == 1 and not self._batched
        if own and isinstance(first, int):
            n = self._ys.shape[0]
            if not -n <= first < n:
                raise IndexError(f"Jacobian: row {first} is out of range for {n} rows")
            row = self._row(first % n)
            return row[tuple(rest)] if rest else row
        if own and isinstance(first, slice):
            return self._matrix(range(self._ys.shape[0])[first])[(slice(None), *rest)]
        if not self.shape and index == slice(None):
            return self._all()
        return self._all()[index]

    def _all(self) -> Tensor:
        return self._matrix(range(self._ys.shape[-1]) if self._ys.ndim > self._batched else (0,))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._all(), name)

    def __repr__(self) -> str:
        return repr(self._all())


def _operator(name: str) -> Callable:
    def operator(self: Jacobian, *others: Any) -> Any:
        return getattr(self._all(), name)(*(o._all() if isinstance(o, Jacobian) else o for o in others))
    operator.__name__ = name
    return operator


for _name in "add radd sub rsub mul rmul truediv rtruediv pow matmul rmatmul neg abs eq ne lt le gt ge".split():
    setattr(Jacobian, f"__{_name}__", _operator(f"__{_name}__"))
Jacobian.__hash__ = object.__hash__  # type: ignore[method-assign]


class Hessian(Jacobian):
    """The second derivatives of a scalar `y` by `xs`: the Jacobian of its gradient."""


def _grad_or_zeros(ys: list[Tensor], xs: list[Tensor], seeds: Any = None) -> list[Tensor]:
    """Gradients that can be differentiated again, constant ones too; zeros by what the ys do not depend on."""
    live = [i for i, y in enumerate(ys) if not y.stop_gradient]
    given = None if seeds is None else [seeds[i] for i in live]
    found = grad([ys[i] for i in live], xs, given, create_graph=True, allow_unused=True) if live else [None] * len(xs)
    full = [zeros_like(x.detach()) if g is None else g for x, g in zip(xs, found, strict=True)]
    for g in full:
        g.stop_gradient = False
    return full


def jacobian(ys: Any, xs: Any, batch_axis: int | None = None) -> Any:
    """Paddle's `paddle.autograd.jacobian`: a `Jacobian`, a tuple of them for a tuple of ys or of xs, and a tuple of
    tuples, [ys][xs], for both.

    batch_axis: None, or 0 where the first dimension of all tensors is a batch of independent examples.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([1.0, 2.0], stop_gradient=False)
    >>> jacobian(x * x, x)[:].tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    batched = _batched("jacobian", batch_axis)
    return _nested(ys, lambda y: _nested(xs, lambda x: Jacobian(y, x, batched)))


def hessian(ys: Tensor, xs: Any, batch_axis: int | None = None) -> Any:
    """Paddle's `paddle.autograd.hessian`: a `Hessian`, a tuple of tuples of them for a tuple of xs.

    ys: a tensor of one element; batched, of one element per batch entry.
    Raises: ValueError for others.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([1.0, 2.0], stop_gradient=False)
    >>> hessian((x * x * x).sum(), x)[:].tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    batched = _batched("hessian", batch_axis)
    if ys.size != (ys.shape[0] if batched and ys.ndim else 1):
        raise ValueError(f"hessian: expected ys of one element{' per batch entry' if batched else ''}, got "
                         f"{describe(ys.payload)}; reduce it first")
    gradients = iter(_grad_or_zeros([total(ys)], as_list(xs)))
    return _nested(xs, lambda x: (lambda g: _nested(xs, lambda other: Hessian(g, other, batched)))(next(gradients)))


def _batched(what: str, batch_axis: int | None) -> bool:
    if batch_axis not in (None, 0):
        raise ValueError(f"{what}: expected batch_axis None or 0, got {batch_axis!r}")
    return batch_axis == 0


def _nested(x: Any, f: Callable) -> Any:
    return tuple(map(f, x)) if isinstance(x, (list, tuple)) else f(x)


def vjp(func: Callable, xs: Any, v: Any = None) -> tuple[Any, Any]:
    """(func(*xs), v^T J): results, and gradients by xs of the results weighted with v (None: ones).

    xs, v: a tensor, or a sequence of them.  The function is called on leaves of its own.

    >>> from minipd.ops.creation import to_tensor
    >>> vjp(lambda x: x * x, to_tensor([1.0, 3.0]), to_tensor([1.0, 0.5]))[1].tolist()
    [2.0, 3.0]
    """
    single, leaves, ys = _called("vjp", func, xs)
    seeds = _seeds("vjp", v, ys)
    found = _grad_or_zeros(as_list(ys), leaves, seeds)
    return ys, found[0] if single else tuple(found)


def jvp(func: Callable, xs: Any, v: Any = None) -> tuple[Any, Any]:
    """(func(*xs), J v): results, and their derivatives along the direction v (None: ones), 0 for constants.

    xs, v: a tensor, or a sequence of them.  The function is called on leaves of its own, and recorded in any mode.
    u^T J is linear in u, so its gradient by u, weighted with v, is J v: reverse mode twice.
    Raises: ValueError if v does not have the shapes of xs.

    >>> from minipd.ops.creation import to_tensor
    >>> jvp(lambda x: x * x, to_tensor([1.0, 3.0]), to_tensor([1.0, 0.5]))[1].tolist()
    [2.0, 3.0]
    """
    _, leaves, ys = _called("jvp", func, xs)
    directions = _seeds("jvp", v, leaves)
    us = [zeros_like(y) for y in as_list(ys)]
    for u in us:
        u.stop_gradient = False
    found = _grad_or_zeros(_grad_or_zeros(as_list(ys), leaves, us), us, directions)
    return ys, tuple(found) if isinstance(ys, (list, tuple)) else found[0]


def _called(what: str, func: Callable, xs: Any) -> tuple[bool, list[Tensor], Any]:
    """(whether xs is one tensor, leaves with the values of xs, func of them)."""
    if not callable(func):
        raise TypeError(f"{what}: expected a function, got {type(func).__name__}")
    leaves = []
    for x in as_list(xs):
        if not isinstance(x, Tensor):
            raise TypeError(f"{what}: expected xs to be a Tensor or a sequence of Tensors, got {type(x).__name__}")
        leaf = x.detach()
        leaf.stop_gradient = False
        leaves.append(leaf)
    with using(grad=True):
        return not isinstance(xs, (list, tuple)), leaves, func(*leaves)


def _seeds(what: str, v: Any, like: Any) -> list[Tensor]:
    wanted = as_list(like)
    if v is None:
        return [ones_like(x.detach()) for x in wanted]
    given = as_list(v)
    shapes, expected = [list(x.shape) for x in given], [list(x.shape) for x in wanted]
    if shapes != expected:
        raise ValueError(f"{what}: expected v of the shapes {expected}, got {shapes}")
    return given
