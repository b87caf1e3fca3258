"""Layer: parameters, buffers and sublayers, and what to compute with them.

What a layer holds, and how to walk it, is in `tree`; its state_dict in `state`; other dtypes in `conversion`.
Calling a layer adds its name to the path by which this rank names its random draws (`framework/random`), so what a
dropout draws depends on where it stands in the model and on nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.boundary import tell
from minipd.framework.place import check_device
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.nn.conversion import Converted
from minipd.nn.hooks import HookRemoveHelper, Hooks
from minipd.nn.param_attr import ParamAttr
from minipd.nn.parameter import create_parameter, parameter_name
from minipd.nn.state import Stateful
from minipd.nn.tree import Tree

__all__ = ["Layer"]


class Layer(Converted, Stateful, Tree):
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
        self._dtype: Any = dtypes.get_default_dtype() if dtype is None else dtype
        self._buffer_names = {}

    # ------------------------------------------------------------------------------------------------ calling
    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        scope, context = self._scope, current()
        if scope:
            rng = context.rng
            rng.push(scope)
        layers = context.ground.layers
        if layers is not None:
            layers.enter(type(self).__name__)
        try:
            if self._pre_hooks or self._post_hooks:
                return self._run_with_hooks(inputs, kwargs)
            return self.forward(*inputs, **kwargs)
        except Exception as error:
            tell(type(self).forward, (self, *inputs), kwargs, error)
            raise
        finally:
            if scope:
                rng.pop()
            if layers is not None:
                layers.leave()

    def _run_with_hooks(self, inputs: tuple, kwargs: dict) -> Any:
        if self._pre_hooks:
            inputs, kwargs = self._pre_hooks.before(self, inputs, kwargs)
        try:
            out = self.forward(*inputs, **kwargs)
        except Exception:
            if self._post_hooks:
                self._post_hooks.after_failure(self, inputs, kwargs)
            raise
        return self._post_hooks.after(self, inputs, kwargs, out) if self._post_hooks else out

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the layer computes."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward(): a Layer's subclass says there what "
                                  "it computes")

    def backward(self, *inputs: Any) -> Any:
        """Not for a layer to define: gradients follow from what `forward` computes."""
        raise ValueError(f"{type(self).__name__}: a Layer has no backward(); call backward() of a tensor, the loss")

    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False,
                                  with_kwargs: bool = False) -> HookRemoveHelper:
        """Call `hook(layer, inputs)` before `forward`; what it returns, if not None, replaces the inputs.

        with_kwargs: call `hook(layer, inputs, kwargs)`, which may return (inputs, kwargs).
        """
        self._pre_hooks = self._pre_hooks or Hooks()
        return self._pre_hooks.add(hook, prepend, with_kwargs)

    def register_forward_post_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False,
                                   always_call: bool = False) -> HookRemoveHelper:
        """Call `hook(layer, inputs, outputs)` after `forward`; what it returns, if not None, replaces the outputs.

        with_kwargs: call `hook(layer, inputs, kwargs, outputs)`.
        always_call: also where `forward` raises; outputs are None then, and the error goes on.
        """
        self._post_hooks = self._post_hooks or Hooks()
        return self._post_hooks.add(hook, prepend, with_kwargs, always_call)

    register_forward_hook = register_forward_post_hook

    # ------------------------------------------------------------------------------------------------ creating
    def create_parameter(self, shape: Any, attr: Any = None, dtype: Any = None, is_bias: bool = False,
                         default_initializer: Any = None, device: Any = None) -> Any:
        """A new parameter for this layer, named after it; None if `attr` is False.  It still has to be assigned."""
        check_device(f"{type(self).__name__}.create_parameter", device)
        if attr is False:
            return None
        attr = ParamAttr.of(attr)
        name = attr.name or parameter_name(self._full_name, is_bias)
        return create_parameter(shape, self._dtype if dtype is None else dtype, name, attr, is_bias,
                                default_initializer)

    def create_tensor(self, name: str | None = None, persistable: bool | None = None, dtype: Any = None) -> Tensor:
        """A new tensor named after this layer, without elements: something to `paddle.assign` to."""
        x = Tensor(np.empty((0,), dtypes.to_np(self._dtype if dtype is None else dtype)))
        x.name = f"{self._full_name}.{name}" if name else current().unique_name(f"{self._full_name}._generated_var")
        x.persistable = bool(persistable)
        return x

    create_variable = create_tensor

    # -------------------------------------------------------------------------------------------- modes and gradients
    def train(self, mode: bool = True) -> Layer:
        """Training mode, for this layer and all inside: dropout drops.  Returns the layer."""
        for layer in self.sublayers(include_self=True):
            layer.training = mode
        return self

    def eval(self) -> Layer:
        """Evaluation mode, for this layer and all inside.  Returns the layer."""
        return self.train(False)

    def clear_gradients(self, set_to_zero: bool = True) -> None:
        """Fill the gradients of all parameters with zeros, or forget them."""
        for p in self.parameters():
            p.clear_gradient(set_to_zero)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or fill them with zeros."""
        self.clear_gradients(not set_to_none)

    def requires_grad_(self, requires_grad: bool = True) -> Layer:
        """Let all parameters want a gradient, or none.  Returns the layer."""
        for p in self.parameters():
            p.stop_gradient = not requires_grad
        return self

    # ----------------------------------------------------------------------------------------------- describing
    def full_name(self) -> str:
        """The generated name, unique in this rank: `linear_0`."""
        return self._full_name


def _snake_case(name: str) -> str:
    """
    >>> _snake_case("RMSNorm"), _snake_case("LayerList"), _snake_case("Conv2DTranspose")
    ('rms_norm', 'layer_list', 'conv2d_transpose')
    """
    words = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", words).lower()
