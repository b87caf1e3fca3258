"""Recomputation: forget what a part of the model saved for backward, and compute it again when backward asks.

Memory for time: between forward and backward only the arguments of the part are kept.  It is done by hooks on what the
tape saves (`saved_hooks`): going forward each value is replaced by its number; the first number that backward asks for
makes the function run once more, which saves the same values in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.autograd.saved_hooks import saved_tensors_hooks
from minipd.framework.context import using
from minipd.framework.meta import describe, is_traced
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor

__all__ = ["recompute"]


def recompute(function: Callable, *args: Any, preserve_rng_state: bool = True, use_reentrant: bool = True,
              **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, whose intermediate values are computed again in backward instead of kept.

    preserve_rng_state: dropout draws the same masks again.  use_reentrant: accepted as in Paddle; there is one way of
    recomputing here, which gives all gradients, also those of parameters that the function reads.
    While a program is traced this is a plain call: there the compiler decides what is kept (`jit.saving`).

    Raises: RuntimeError in backward if an argument was modified in place, or the second run saves other values.
    (Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016; Paddle's `distributed.fleet.utils.recompute`.)

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([1.0, 2.0], stop_gradient=False)
    >>> recompute(lambda x: (x * x * x).sum(), x).backward()
    >>> x.grad.tolist()
    [3.0, 12.0]
    """
    tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
    if not current().grad_enabled or any(is_traced(x.payload) for x in tensors):
        return function(*args, **kwargs)
    run = _Run(function, args, kwargs, tensors, preserve_rng_state)
    with saved_tensors_hooks(run.forget, run.recall):
        return function(*args, **kwargs)


class _Run:
    """One call: what it takes to run it again, and the values that the second run has saved and backward not read."""

    def __init__(self, function: Callable, args: tuple, kwargs: dict, tensors: list[Tensor], preserve: bool):
        self.function, self.args, self.kwargs = function, args, kwargs
        self.versions = [(x, x.inplace_version) for x in tensors]
        self.random = current().rng.get_state() if preserve else None
        self.metas: list[tuple] = []        # shape and dtype of each value that the first run saved
        self.found: dict[int, Tensor] = {}

    def forget(self, x: Tensor) -> int:
        """Going forward: a value becomes its number."""
        self.metas.append((tuple(x.payload.shape), x.payload.dtype))
        return len(self.metas) - 1

    def recall(self, number: int) -> Tensor:
        """Going backward: a number becomes its value.  Each is asked for once, so it is given away."""
        if not self.found:
            self.found = dict(enumerate(self._again()))
        return self.found.pop(number)

    def _again(self) -> list[Tensor]:
        """Run the function once more, and return what it saves for backward, in its order.

        The run is recorded, whatever mode backward is in, and draws from the random state that the first one began
        with (`self.random`; None: from where the generator is).  The generator is left as it was, after an error too.
        Raises: RuntimeError if a tensor among the arguments was modified in place since the call (`self.versions`), or
        if number, shapes or dtypes of what is saved are not those of the first run (`self.metas`).
        """
        name = getattr(self.function, "__name__", type(self.function).__name__)
        for x, version in self.versions:
            if x.inplace_version != version:
                raise RuntimeError(f"recompute of {name}: its argument {x.name} {describe(x.payload)} was modified in "
                                   "place after the call, so that the call cannot be repeated; give it a clone()")
        saved: list[Tensor] = []
        rng = current().rng
        before = rng.get_state()
        try:
            if self.random is not None:
                rng.set_state(self.random)
            with using(grad=True), saved_tensors_hooks(saved.append, self._unread):
                self.function(*map(_separate, self.args), **{k: _separate(v) for k, v in self.kwargs.items()})
        finally:
            rng.set_state(before)
        metas = [(tuple(x.payload.shape), x.payload.dtype) for x in saved]
        if metas != self.metas:
            raise RuntimeError(f"recompute of {name}: the second run saved {len(metas)} values for backward that are "
                               f"not like the {len(self.metas)} of the first; the function must do the same each time")
        return saved

    def _unread(self, x: Any) -> Tensor:
        raise RuntimeError("recompute: the function differentiates inside itself; call recompute on the parts instead")


def _separate(x: Any) -> Any:
    """An argument of the second run: a tensor of the same memory that wants a gradient if the argument did."""
    if not isinstance(x, Tensor):
        return x
    y = x.detach()
    y.stop_gradient = x.stop_gradient
    return y
