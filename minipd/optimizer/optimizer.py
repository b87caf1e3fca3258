"""Optimizer: steps over the parameters of a model, with what their gradients are now."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework.context import using
from minipd.framework.meta import describe, is_traced
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor, hold
from minipd.framework.views import rebind
from minipd.ops.logic import logical_or
from minipd.ops.math import where
from minipd.optimizer import state as saved
from minipd.optimizer.core import Core, Pairs, State, shared
from minipd.optimizer.groups import Group, groups_of, number
from minipd.optimizer.lr import LRScheduler
from minipd.optimizer.rate import Rate
from minipd.regularizer import regularizer_of

__all__ = ["Optimizer"]


class Optimizer(Core):
    """The base of all optimizers.  A subclass defines what `Core` asks for.

    Args:
        learning_rate: a number, or a schedule from `optimizer.lr`.
        parameters: the tensors to update, or dicts {"params": tensors, ...} whose further entries (learning_rate, a
            factor; weight_decay; grad_clip; numbers such as beta1) hold for these instead of the optimizer's.
        weight_decay: a number (L2Decay), L1Decay or L2Decay: a term added to the gradients after clipping.
        grad_clip: ClipGradByGlobalNorm, ClipGradByNorm or ClipGradByValue.
    """

    def __init__(self, learning_rate: float | Tensor | LRScheduler, parameters: Any = None, weight_decay: Any = None,
                 grad_clip: Any = None, name: str | None = None, **constants: Any):
        if grad_clip is not None and not callable(grad_clip):
            raise TypeError(f"{type(self).__name__}: expected grad_clip to be one of nn.ClipGradBy..., got "
                            f"{grad_clip!r}")
        self.constants = {key: number(type(self).__name__, key, value) for key, value in constants.items()}
        self.rate = Rate(type(self).__name__, learning_rate)
        self._groups = groups_of(parameters, weight_decay, grad_clip, self.constants)
        self._others = Group([], None, weight_decay, grad_clip, {})
        self._group_of = {p.name: group for group in self._groups for p in group.params}
        self._parameter_list = [p for group in self._groups for p in group.params]
        self._state: dict[str, State] = {}              # by the parameter's name
        self._missed = {}
        self._step: Tensor | None = None

    # ---------------------------------------------------------------------------------------------------- stepping
    def scalars(self) -> tuple[Tensor, Tensor]:
        """(learning rate, number of steps so far), 0-D: the same two tensors always, kept up to date.

        The rate is float32, or float64 beside float64 parameters; the count is int64.
        """
        if self._step is None:
            self._step = Tensor(np.array(0, np.int64))
            self._step.name, self._step.persistable = current().unique_name("step"), True
        wide = any(p.payload.dtype == np.float64 for p in self._parameter_list)
        return self.rate.tensor(np.float64 if wide else np.float32), self._step

    def state_of(self, param: Tensor) -> State:
        """What the optimizer keeps for `param`, made at the first call.

        Raises: RuntimeError while tracing, where state that is made now would be made anew by every run.
        """
        if param.name not in self._state:
            if is_traced(param.payload):
                raise RuntimeError(f"{type(self).__name__}: the state of {param.name} must exist before the step is "
                                   "traced; call prepare() first")
            self._state[param.name] = self.init_state(param)
        return self._state[param.name]

    def prepare(self) -> dict[str, Tensor]:
        """Make the state of all parameters now; without it, `step()` makes what is missing.

        Returns: name -> tensor of everything but the parameters that a step reads or writes, rate and count included:
        the program state of a traced step, as the same handles ever after.
        """
        out = {t.name: t for p in self._parameter_list for t in self.state_of(p).values()}
        return out | {t.name: t for t in self.scalars()}

    def step(self) -> None:
        """Update every parameter that has a gradient.

        Raises: ValueError if the optimizer was made without parameters.
        """
        self.apply_gradients(self._gradients(None))

    def step_unless(self, unless: Any) -> None:
        """`step()`, but where `unless` holds (0-D bool, or False) everything stays as it was."""
        self.apply_gradients(self._gradients(None), unless)

    def apply_gradients(self, params_grads: Pairs, unless: Any = False) -> None:
        """One step with these gradients: the parameters, the state and the count are rebound to their new values.

        With global-norm clipping, a step whose gradients are not finite changes nothing, on any rank; nor does one
        where `unless` holds, 0-D bool.  Without any gradient there is no step, unless other ranks have some and clip
        together with this one.
        """
        if not params_grads and not any(map(shared, self._groups)):
            return
        params, grads = [p for p, _ in params_grads], [g for _, g in params_grads]
        current().ground.adopt(self, params)
        with using(grad=False, amp=None):
            lr, step = self.scalars()
            state = [self.state_of(p) for p in params]
            pairs, skip = self.prepared(params, grads)
            if unless is not False:
                skip = unless if skip is False else logical_or(skip, unless)
            count = step + 1
            new_params, new_state = self.updated(pairs, state, lr, count, skip)
            replace(step, count if skip is False else where(skip, step, count))
            for p, s, new, kept in zip(params, state, new_params, new_state, strict=True):
                replace(p, new)
                for name, tensor in kept.items():
                    replace(s[name], tensor)
        given = {id(p) for p in params}
        for p in self._parameter_list:
            if id(p) not in given:
                self._missed[p.name] = self._missed.get(p.name, 0) + 1

    def _gradients(self, parameters: Any) -> Pairs:
        params = self._parameter_list or current().ground.trainable()
        if parameters is not None:
            names = {p if isinstance(p, str) else p.name for p in parameters}
            params = [p for p in params if p.name in names] or [p for p in parameters if isinstance(p, Tensor)]
        if not params:
            raise ValueError(f"{type(self).__name__}: expected parameters, got none; pass parameters="
                             "model.parameters() when making the optimizer")
        return [(p, p.grad) for p in params if not p.stop_gradient and p.grad is not None]

    def minimize(self, loss: Tensor, startup_program: Any = None, parameters: Any = None,
                 no_grad_set: Any = None) -> tuple[None, Pairs]:
        """Paddle's `minimize`: a step with the gradients of `loss`, which in eager mode `loss.backward()` has left.

        While tracing, the backward computation is added first.  Returns (None, [(parameter, gradient), ...]).
        Raises: RuntimeError in eager mode if no parameter has a gradient; while tracing, ValueError for a loss that is
        not one number.
        """
        if is_traced(loss.payload):
            if any(d != 1 for d in loss.payload.shape):
                raise ValueError(f"minimize: expected a loss of one element, got {describe(loss.payload)}; take its "
                                 "mean() or sum()")
            loss.backward()
        pairs = self._wanted(parameters, no_grad_set)
        if not pairs:
            raise RuntimeError("minimize: no parameter has a gradient; call loss.backward() first")
        self.apply_gradients(pairs)
        return None, pairs

    def _wanted(self, parameters: Any, no_grad_set: Any) -> Pairs:
        blocked = {t if isinstance(t, str) else t.name for t in no_grad_set or ()}
        return [(p, g) for p, g in self._gradients(parameters) if p.name not in blocked]

    def clear_grad(self, set_to_zero: bool = False) -> None:
        """Forget the gradients of all parameters.

        set_to_zero: fill them with zeros instead.  (Paddle's default; here it would cost an addition per parameter and
        step, and tell parameters that had no gradient from those that had none yet.)
        """
        for p in self._parameter_list:
            p.clear_gradient(set_to_zero)

    clear_gradients = clear_grad

    def zero_grad(self, set_to_none: bool = True) -> None:
        """The same under another name."""
        self.clear_grad(not set_to_none)

    def backward(self, loss: Tensor, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None,
                 callbacks: Any = None) -> Pairs:
        """The first half of `minimize`: compute gradients; returns [(parameter, gradient), ...] for `apply_gradients`.

        callbacks: accepted, without effect.
        """
        loss.backward()
        return self._wanted(parameters, no_grad_set)

    def append_regularization_ops(self, parameters_and_grads: Pairs, regularization: Any = None) -> Pairs:
        """The pairs with the terms of weight decay added to the gradients: the parameter's own, else `regularization`.
        """
        default = regularizer_of(regularization)
        terms = [(p, g, getattr(p, "regularizer", None) or default) for p, g in parameters_and_grads]
        with using(grad=False):
            return [(p, g if term is None else term(p, g)) for p, g, term in terms]

    # ----------------------------------------------------------------------------------------------- learning rate
    def get_lr(self) -> float:
        """The current learning rate."""
        return self.rate()

    def set_lr(self, value: float) -> None:
        """Another learning rate from now on.

        Raises: RuntimeError if a schedule sets it.
        """
        self.rate.set(value)

    def set_lr_scheduler(self, scheduler: LRScheduler) -> None:
        """Let a schedule set the learning rate from now on.

        Raises: TypeError for what is no schedule.
        """
        self.rate.use(scheduler)

    # ------------------------------------------------------------------------------------------------------- state
    def state_dict(self) -> dict[str, Any]:
        """Everything the next steps depend on, apart from the parameters: see `optimizer.state`."""
        return saved.state_dict(self)

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Return to a state from `state_dict`.

        Raises: ValueError naming what is missing, unexpected, or of another shape; nothing was loaded then.
        """
        saved.set_state_dict(self, state_dict)

    load_state_dict = set_dict = set_state_dict


def replace(x: Tensor, new: Tensor) -> None:
    """The handle x takes new values.  Where no other handle shares its memory, that memory is simply let go."""
    if x.storage is None and x.view_of is None and x.views is None:
        hold(x, new.payload)
    else:
        rebind(x, new, "optimizer step")
