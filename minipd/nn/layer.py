"""Layer: parameters, buffers and sublayers, and what to compute with them.

What a layer holds, and how to walk it, is in `tree`.
Calling a layer adds its name to the path by which this rank names its random draws (`framework/random`), so what a
dropout draws depends on where it stands in the model and on nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.framework.meta import Unfilled
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.nn.hooks import HookRemoveHelper, Hooks
from minipd.nn.param_attr import ParamAttr
from minipd.nn.parameter import create_parameter, parameter_name
from minipd.nn.state import load_state
from minipd.nn.tree import Tree
from minipd.ops.cast import cast

__all__ = ["Layer"]


class Layer(Tree):
    """The base of all layers and models (Paddle's `nn.Layer`).  A subclass defines `forward`.

    name_scope: the stem of the generated name; the class's name in snake case unless given.
    dtype: of parameters that are created without one; the default dtype unless given.

    >>> from minipd.nn import Linear
    >>> class Residual(Layer):
    ...     def __init__(self, dim):
    ...         super().__init__()
    ...         self.inner = Linear(dim, dim)
    ...     def forward(self, x):
    ...         return x + self.inner(x)
    >>> model = Residual(4)
    >>> [(name, p.shape) for name, p in model.named_parameters()]
    [('inner.weight', paddle.Size([4, 4])), ('inner.bias', paddle.Size([4]))]
    >>> model
    Residual(
      (inner): Linear(in_features=4, out_features=4, dtype=float32)
    )
    """

    training = True
    _pre_hooks: Hooks | None = None
    _post_hooks: Hooks | None = None

    def __init__(self, name_scope: str | None = None, dtype: Any = None):
        self.training = True
        self._full_name = current().unique_name(_snake_case(name_scope or type(self).__name__))
        self._dtype = None if dtype is None else dtypes.to_np(dtype)
        self._buffer_names = {}

    # ------------------------------------------------------------------------------------------------ calling
    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        scope = self._scope
        if scope:
            rng = current().rng
            rng.push(scope)
        try:
            if self._pre_hooks or self._post_hooks:
                return self._run_with_hooks(inputs, kwargs)
            return self.forward(*inputs, **kwargs)
        finally:
            if scope:
                rng.pop()

    def _run_with_hooks(self, inputs: tuple, kwargs: dict) -> Any:
        if self._pre_hooks:
            inputs, kwargs = self._pre_hooks.before(self, inputs, kwargs)
        out = self.forward(*inputs, **kwargs)
        return self._post_hooks.after(self, inputs, kwargs, out) if self._post_hooks else out

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the layer computes."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward(): a Layer's subclass says there what "
                                  "it computes")

    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False,
                                  with_kwargs: bool = False) -> HookRemoveHelper:
        """Call `hook(layer, inputs)` before `forward`; what it returns, if not None, replaces the inputs.

        with_kwargs: call `hook(layer, inputs, kwargs)`, which may return (inputs, kwargs).
        """
        self._pre_hooks = self._pre_hooks or Hooks()
        return self._pre_hooks.add(hook, prepend, with_kwargs)

    def register_forward_post_hook(self, hook: Callable, *, prepend: bool = False,
                                   with_kwargs: bool = False) -> HookRemoveHelper:
        """Call `hook(layer, inputs, outputs)` after `forward`; what it returns, if not None, replaces the outputs."""
        self._post_hooks = self._post_hooks or Hooks()
        return self._post_hooks.add(hook, prepend, with_kwargs)

    # ------------------------------------------------------------------------------------------------ creating
    def create_parameter(self, shape: Any, attr: Any = None, dtype: Any = None, is_bias: bool = False,
                         default_initializer: Any = None) -> Any:
        """A new parameter for this layer, named after it; None if `attr` is False.  It still has to be assigned."""
        if attr is False:
            return None
        attr = ParamAttr.of(attr)
        name = attr.name or parameter_name(self._full_name, is_bias)
        return create_parameter(shape, self._dtype if dtype is None else dtype, name, attr, is_bias,
                                default_initializer)

    # -------------------------------------------------------------------------------------------- modes and state
    def train(self, mode: bool = True) -> Layer:
        """Training mode, for this layer and all inside: dropout drops.  Returns the layer."""
        for layer in self.sublayers(include_self=True):
            layer.training = mode
        return self

    def eval(self) -> Layer:
        """Evaluation mode, for this layer and all inside.  Returns the layer."""
        return self.train(False)

    def to(self, device: Any = None, dtype: Any = None, blocking: bool | None = None) -> Layer:
        """Floating parameters and buffers in another dtype, in place.  Returns the layer.

        Raises: ValueError for a device other than the CPU.
        """
        if device is not None and str(device) not in ("cpu", "Place(cpu)"):
            raise ValueError(f"Layer.to: expected device 'cpu', got {device!r}: there is no other one here")
        if dtype is None:
            return self
        np_dtype = dtypes.to_np(dtype)
        with using(grad=False):
            for x in (*self.parameters(), *self.buffers()):
                if x.payload.dtype in dtypes.FLOATS and x.payload.dtype != np_dtype:
                    _change_dtype(x, np_dtype)
        return self

    def astype(self, dtype: Any = None) -> Layer:
        """The same as `to(dtype=dtype)`."""
        return self.to(dtype=dtype)

    def clear_gradients(self, set_to_zero: bool = False) -> None:
        """Forget the gradients of all parameters (or fill them with zeros)."""
        for p in self.parameters():
            p.clear_gradient(set_to_zero)

    def state_dict(self, destination: dict | None = None, include_sublayers: bool = True,
                   structured_name_prefix: str = "") -> dict[str, Tensor]:
        """Name -> tensor for all parameters and persistable buffers: the tensors themselves, not copies.

        A tensor that two layers share comes under both names.
        """
        out = {} if destination is None else destination
        out.update((structured_name_prefix + k, v) for k, v in self._parameters.items())
        out.update((structured_name_prefix + k, v) for k, v in self._buffers.items() if self._buffer_names[k])
        if include_sublayers:
            for name, sub in self._sub_layers.items():
                sub.state_dict(out, True, f"{structured_name_prefix}{name}.")
        return out

    def set_state_dict(self, state_dict: Any, use_structured_name: bool = True) -> tuple[list[str], list[str]]:
        """Give parameters and buffers the values of a `state_dict` (Tensors or arrays).

        Paddle warns about names that do not fit and goes on; here nothing is left at its first values by mistake:
        `load_state_dict(..., strict=False)` is there for loading a part.
        Raises: ValueError naming missing and unexpected entries, and those of another shape or dtype; nothing has been
        changed then.
        """
        own = self.state_dict()
        if not use_structured_name:
            own = {t.name: t for t in own.values()}
        return load_state(type(self).__name__, own, state_dict)

    def load_state_dict(self, state_dict: Any, strict: bool = True) -> tuple[list[str], list[str]]:
        """`set_state_dict` that, unless `strict`, lets entries be missing or unexpected.  Returns both lists."""
        return load_state(type(self).__name__, self.state_dict(), state_dict, strict)

    set_dict = load_dict = set_state_dict

    # ----------------------------------------------------------------------------------------------- describing
    def full_name(self) -> str:
        """The generated name, unique in this rank: `linear_0`."""
        return self._full_name


def _change_dtype(x: Tensor, np_dtype: np.dtype) -> None:
    if isinstance(x.payload, Unfilled):
        x.payload = Unfilled(x.payload.shape, np_dtype, x.name)
        return
    x.payload = cast(x, np_dtype).payload
    x.grad = None if x.grad is None else cast(x.grad, np_dtype)
    x.storage, x.seen, x.node = None, 0, None           # new memory: whatever shared the old one keeps that


def _snake_case(name: str) -> str:
    """
    >>> _snake_case("RMSNorm"), _snake_case("LayerList")
    ('rms_norm', 'layer_list')
    """
    words = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z0-9])([A-Z])", r"\1_\2", words).lower()
