"""PyLayer: an operator whose forward and backward the user writes.

Its backward is a gradient rule like any row's, so it can be differentiated again if it is written with operators.

A result that is saved for backward is kept without its history, which ends in the node that keeps it: a reference cycle
otherwise.  It gets the history back when backward reads it.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from minipd.autograd.saved_hooks import Packed
from minipd.autograd.tape import INEXACT, record_call
from minipd.framework.context import using
from minipd.framework.meta import describe, is_traced
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.complex import conj
from minipd.ops.creation import Full

__all__ = ["PyLayer", "PyLayerContext"]


class _Kept(NamedTuple):
    """A saved tensor: the handle, and its version then; `result`: which result of the layer it is, None for others."""

    tensor: Tensor
    version: int
    result: int | None


class PyLayerContext:
    """What `forward` leaves for `backward`, besides attributes of its own choice."""

    def __init__(self) -> None:
        self._saved: list[Any] = []
        self._node: Any = None              # a weak reference
        self._constant: tuple = ()
        self._materialize = True

    def save_for_backward(self, *tensors: Tensor) -> None:
        """Keep tensors (inputs or results of forward, or others) for `saved_tensor`; call it once."""
        self._saved = list(tensors)

    def saved_tensor(self) -> tuple:
        """What `save_for_backward` was given.

        Raises: RuntimeError for a tensor that was modified in place since.
        """
        return tuple(map(self._again, self._saved))

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """These results of forward get no history; backward is given zeros for them."""
        self._constant = tensors

    def mark_not_inplace(self, *tensors: Tensor) -> None:
        """Accepted as in Paddle, and not needed: an input that forward returns becomes a new tensor on its memory."""

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward is given zeros (the default), or None, for results that nobody used."""
        self._materialize = bool(value)

    def set_grad_in_dtype_consistent(self, flag: bool) -> None:
        """Accepted as in Paddle: what backward is given always has the dtype of its result, what it returns is cast."""

    # ------------------------------------------------------------------------------------------------- inside
    def _keep(self, results: dict[int, int]) -> None:
        """From here on, keep what backward needs in a form without cycles.  results: id of a result -> its number."""
        hooks = current().saved_hooks

        def kept(x: Any) -> Any:
            if not isinstance(x, Tensor):
                return x
            if hooks is not None:
                return Packed(hooks, x)
            which = results.get(id(x))
            return _Kept(x if which is None else x.detach(), x.inplace_version, which)

        self._saved = list(map(kept, self._saved))

    def _again(self, kept: Any) -> Any:
        if isinstance(kept, Packed):
            return kept.tensor()
        if not isinstance(kept, _Kept):
            return kept
        x, version, result = kept
        if x.inplace_version != version:
            raise RuntimeError(f"tensor {x.name} {describe(x.payload)} was saved for the backward of a PyLayer and "
                               f"modified in place afterwards: expected version {version}, found {x.inplace_version}; "
                               "save a clone()")
        if result is not None and current().grad_enabled:
            x = x.detach()
            x.node, x.index, x.stop_gradient = self._node(), result, False
        return x


class PyLayer:
    """Subclass it with two static methods, and call `apply`.

    forward(ctx, *args, **kwargs): any computation; not recorded.  backward(ctx, *grads): one gradient per result of
    forward; it returns one per tensor among the arguments of forward, None where there is none.

    >>> from minipd.ops.creation import to_tensor
    >>> class Cube(PyLayer):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         x, = ctx.saved_tensor()
    ...         return g * 3.0 * x * x
    >>> x = to_tensor(2.0, stop_gradient=False)
    >>> Cube.apply(x).backward()
    >>> x.grad.item()
    12.0
    """

    @staticmethod
    def forward(ctx: PyLayerContext, *args: Any, **kwargs: Any) -> Any:
        """The computation.  To be written by the subclass."""
        raise NotImplementedError("PyLayer: write a static method forward(ctx, *args, **kwargs) in your subclass")

    @staticmethod
    def backward(ctx: PyLayerContext, *args: Any) -> Any:
        """The gradient rule.  To be written by the subclass."""
        raise NotImplementedError("PyLayer: write a static method backward(ctx, *grads) in your subclass")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward; results take part in differentiation if a tensor among the arguments does.

        Raises: RuntimeError in a program of `trace`, and NotImplementedError in a branch or loop that tensors decide,
        where only operators are differentiated.
        """
        context, inputs = PyLayerContext(), _tensors((*args, *kwargs.values()))
        recording = current().grad_enabled and any(not x.stop_gradient for x in inputs)
        if recording and any(is_traced(x.payload) for x in inputs) and not current().ground.by_tape():
            raise RuntimeError(f"{cls.__name__}.apply inside a program of `trace`: it is differentiated by the rules "
                               "of its operators and would not call this backward; use to_static or static mode, or "
                               "write the operator as a row")
        with using(grad=False):
            made = cls.forward(context, *args, **kwargs)
        outs = list(made) if isinstance(made, (list, tuple)) else [made]
        given = set(map(id, inputs))
        results = [x.detach() if id(x) in given else x for x in outs]
        if recording:
            cls._record(context, inputs, outs, results)
        return type(made)(results) if isinstance(made, (list, tuple)) else results[0]

    @classmethod
    def _record(cls, context: PyLayerContext, inputs: list[Tensor], outs: list, results: list) -> None:
        """Put the call on the tape.  outs: what forward returned; results: the same, without inputs among them."""
        pairs = [(out, result) for out, result in zip(outs, results, strict=True) if isinstance(result, Tensor)]
        constant, given = set(map(id, context._constant)), set(map(id, inputs))
        for out, result in pairs:
            result.stop_gradient = id(out) in constant or result.payload.dtype not in INEXACT
        context._keep({id(out): i for i, (out, _) in enumerate(pairs) if id(out) not in given})
        metas = [(tuple(result.payload.shape), result.payload.dtype) for _, result in pairs]
        materialize = context._materialize

        def vjp(gs: list[Tensor | None], context: PyLayerContext) -> list[Tensor | None]:
            full = [conj(g) if g is not None else Full(shape=meta[0], value=0, dtype=meta[1]) if materialize else None
                    for g, meta in zip(gs, metas, strict=True)]
            got = cls.backward(context, *full)
            got = list(got) if isinstance(got, (list, tuple)) else [got]
            if len(got) != len(inputs):
                raise ValueError(f"{cls.__name__}.backward: expected {len(inputs)} gradients, one per tensor that "
                                 f"forward was given (None where there is none), got {len(got)}")
            return [_fitting(cls.__name__, i, g, *meta) for i, (g, meta) in enumerate(zip(got, expected, strict=True))]

        expected = [(tuple(x.payload.shape), x.payload.dtype) for x in inputs]
        node = record_call(_Call(cls.__name__), inputs, [result for _, result in pairs], vjp, context)
        context._node = weakref.ref(node)


class _Call(NamedTuple):
    """What the tape wants to know of a recorded call."""

    name: str
    multi: bool = True
    raw_gradient: bool = False


def _fitting(name: str, i: int, g: Any, shape: tuple, dtype: Any) -> Tensor | None:
    """What backward returned for tensor i of forward, in that tensor's dtype."""
    if g is None:
        return None
    if not isinstance(g, Tensor):
        raise TypeError(f"{name}.backward: expected a Tensor or None for tensor {i} of forward, got {type(g).__name__}")
    if tuple(g.payload.shape) != shape:
        raise ValueError(f"{name}.backward: expected a gradient of shape {list(shape)} for tensor {i} of forward, got "
                         f"{describe(g.payload)}")
    return conj(cast(g, dtype))


def _tensors(arguments: Sequence[Any]) -> list[Tensor]:
    """The tensors among arguments, those in lists and tuples included, in order."""
    found: list[Tensor] = []
    for a in arguments:
        if isinstance(a, Tensor):
            found.append(a)
        elif isinstance(a, (list, tuple)):
            found += _tensors(a)
    return found
