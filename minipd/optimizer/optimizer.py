"""Optimizer: parameters, their gradients, and the state that one step hands to the next.

The core is a function without side effects, `update(params, grads, state, lr, step)`, made of operators only: it
serves eager mode, where `step()` calls it and rebinds the results, and a traced program, which passes Values.
Learning rate and step count are 0-D tensors, so that nothing of them is baked into a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.framework.views import rebind
from minipd.ops.cast import cast
from minipd.ops.creation import zeros_like
from minipd.ops.logic import logical_not, logical_or
from minipd.ops.math import scale, where
from minipd.optimizer import state as saved
from minipd.optimizer.groups import Group, groups_of
from minipd.optimizer.lr import LRScheduler
from minipd.regularizer import regularizer_of

__all__ = ["Optimizer"]

Pairs = list[tuple[Tensor, Tensor]]
State = dict[str, Tensor]


class Optimizer:
    """The base of all optimizers.  A subclass defines `state_names` and `rule`.

    Args:
        learning_rate: a number, or a schedule from `optimizer.lr`.
        parameters: the tensors to update, or dicts {"params": tensors, ...} whose further entries (learning_rate, a
            factor; weight_decay; grad_clip) hold for these instead of the optimizer's.
        weight_decay: a number (L2Decay), L1Decay or L2Decay: a term added to the gradients after clipping.
        grad_clip: ClipGradByGlobalNorm, ClipGradByNorm or ClipGradByValue.
    """

    #: what the optimizer keeps per parameter
    state_names: tuple[str, ...] = ()
    #: keep a float32 copy of low-precision parameters, which would otherwise lose small updates to rounding
    multi_precision = False

    def __init__(self, learning_rate: float | LRScheduler, parameters: Any = None, weight_decay: Any = None,
                 grad_clip: Any = None, name: str | None = None):
        if isinstance(learning_rate, bool) or not isinstance(learning_rate, (int, float, LRScheduler)):
            raise TypeError(f"{type(self).__name__}: expected learning_rate to be a number or an LRScheduler, got "
                            f"{learning_rate!r}")
        if grad_clip is not None and not callable(grad_clip):
            raise TypeError(f"{type(self).__name__}: expected grad_clip to be one of nn.ClipGradBy..., got "
                            f"{grad_clip!r}")
        self._learning_rate = learning_rate
        self._groups = groups_of(parameters, weight_decay, grad_clip)
        self._others = Group([], None, weight_decay, grad_clip)         # parameters that are in no group
        self._group_of = {p.name: group for group in self._groups for p in group.params}
        self._parameter_list = [p for group in self._groups for p in group.params]
        self._state: dict[str, State] = {}              # by the parameter's name
        self._missed: dict[str, int] = {}               # ... in how many steps it had no gradient
        self._scalars: tuple[Tensor, Tensor] | None = None

    # --------------------------------------------------------------------------------------------------- the core
    def rule(self, param: Tensor, grad: Tensor, state: State, lr: Tensor, step: Tensor, skip: Any,
             **attributes: Any) -> tuple[Tensor, State]:
        """One parameter's new value and state: a row, with the attributes from `attributes`."""
        raise NotImplementedError(f"{type(self).__name__}: an optimizer defines rule(param, grad, state, lr, step, "
                                  "skip)")

    def attributes(self, param: Tensor, group: Group) -> dict[str, Any]:
        """The attributes of the row for this parameter."""
        return {}

    def decay_term(self, param: Tensor, group: Group) -> Any:
        """The regularizer that adds to the gradient: the parameter's own, else the group's."""
        return getattr(param, "regularizer", None) or regularizer_of(group.weight_decay)

    def rate_factor(self, param: Tensor, group: Group) -> float:
        """What the learning rate is multiplied by for this parameter."""
        if group.learning_rate is not None:
            return group.learning_rate
        return getattr(param, "optimize_attr", {}).get("learning_rate", 1.0)

    def update(self, params: Sequence[Tensor], grads: Sequence[Tensor], state: Sequence[State], lr: Tensor,
               step: Tensor) -> tuple[list[Tensor], list[State]]:
        """(new parameters, new state) after one step; nothing is changed.

        params, grads: in the same order.  state: per parameter, name -> tensor, as `init_state` makes it.  lr, step:
        0-D, step counts from 1.
        """
        pairs, skip = self.prepared(params, grads)
        return self.updated(pairs, state, lr, step, skip)

    def prepared(self, params: Sequence[Tensor], grads: Sequence[Tensor]) -> tuple[Pairs, Any]:
        """(parameter, gradient) with placements matched and norms clipped, and whether the step must be skipped.

        A gradient takes its parameter's placements first: one that is still partial is reduced here, once per step.
        skip: 0-D bool, true where a clipping norm is not finite (all ranks see the same norm, and skip together);
        False where no norm is computed.
        """
        out = [(p, ROWS["match"](g, p) if hasattr(p.payload, "placements") else g)
               for p, g in zip(params, grads, strict=True)]
        skip: Any = False
        for group in (*self._groups, self._others):         # each is clipped by itself
            at = [i for i, p in enumerate(params) if self._group(p) is group]
            if group.grad_clip is not None and (at or group is not self._others and _shared(group)):
                clipped, finite = group.grad_clip.checked([out[i] for i in at])
                for i, pair in zip(at, clipped, strict=True):
                    out[i] = pair
                if finite is not None:
                    skip = logical_not(finite) if skip is False else logical_or(skip, logical_not(finite))
        return out, skip

    def updated(self, pairs: Pairs, state: Sequence[State], lr: Tensor, step: Tensor,
                skip: Any = False) -> tuple[list[Tensor], list[State]]:
        """`update` with gradients that are prepared."""
        rates, counts = _Cache(lambda f: lr if f == 1.0 else scale(lr, f)), _Cache(lambda n: step - n if n else step)
        new_params, new_state = [], []
        for (p, g), s in zip(pairs, state, strict=True):
            group = self._group(p)
            low = p.payload.dtype in dtypes.LOW_PRECISION
            wide = s["fp32_master"] if "fp32_master" in s else cast(p, "float32") if low else p
            g = cast(g, wide.dtype)
            term = self.decay_term(p, group)
            g = g if term is None else term(wide, g)
            new, kept = self.rule(wide, g, s, rates[self.rate_factor(p, group)], counts[self._missed.get(p.name, 0)],
                                  skip, **self.attributes(p, group))
            if "fp32_master" in s:
                kept["fp32_master"] = new
            new_params.append(cast(new, p.dtype))
            new_state.append(kept)
        return new_params, new_state

    def init_state(self, param: Tensor) -> State:
        """What the optimizer keeps for `param` before its first step: zeros, with its placements."""
        with using(grad=False):
            wide = cast(param, "float32") if param.payload.dtype in dtypes.LOW_PRECISION else param
            state = {name: zeros_like(wide) for name in self.state_names}
            if wide is not param and self.multi_precision:
                state["fp32_master"] = wide
        for name, tensor in state.items():
            tensor.name, tensor.persistable = saved.state_key(param, name), True
        return state

    def _group(self, param: Tensor) -> Group:
        return self._group_of.get(param.name, self._others)

    # ---------------------------------------------------------------------------------------------------- stepping
    def scalars(self) -> tuple[Tensor, Tensor]:
        """(learning rate, number of steps so far), 0-D: the same two tensors always, kept up to date.

        The rate is float32, or float64 beside float64 parameters; the count is int64.
        """
        if self._scalars is None:
            wide = any(p.payload.dtype == np.float64 for p in self._parameter_list)
            lr = Tensor(np.array(self.get_lr(), np.float64 if wide else np.float32))
            step = Tensor(np.array(0, np.int64))
            lr.name, step.name = current().unique_name("learning_rate"), current().unique_name("step")
            lr.persistable = step.persistable = True
            if isinstance(self._learning_rate, LRScheduler):
                self._learning_rate.follow(lr)
            self._scalars = lr, step
        return self._scalars

    def state_of(self, param: Tensor) -> State:
        """What the optimizer keeps for `param`, made at the first call.

        Raises: RuntimeError while tracing, where state that is made now would be made anew by every run.
        """
        if param.name not in self._state:
            if getattr(type(param.payload), "traced", False):
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

    def apply_gradients(self, params_grads: Pairs) -> None:
        """One step with these gradients: the parameters, the state and the count are rebound to their new values.

        With global-norm clipping, a step whose gradients are not finite changes nothing, on any rank.  Without any
        gradient there is no step, unless other ranks have some and clip together with this one.
        """
        if not params_grads and not any(map(_shared, self._groups)):
            return
        params, grads = [p for p, _ in params_grads], [g for _, g in params_grads]
        with using(grad=False):
            lr, step = self.scalars()
            state = [self.state_of(p) for p in params]
            pairs, skip = self.prepared(params, grads)
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
        params = self._parameter_list if parameters is None else list(parameters)
        if not params:
            raise ValueError(f"{type(self).__name__}: expected parameters, got none; pass parameters="
                             "model.parameters() when making the optimizer")
        return [(p, p.grad) for p in params if not p.stop_gradient and p.grad is not None]

    def minimize(self, loss: Tensor, startup_program: Any = None, parameters: Any = None,
                 no_grad_set: Any = None) -> tuple[None, Pairs]:
        """Paddle's `minimize`: a step with the gradients of `loss`, which in eager mode `loss.backward()` has left.

        While tracing, the backward computation is added first.  Returns (None, [(parameter, gradient), ...]).
        Raises: RuntimeError in eager mode if no parameter has a gradient.
        """
        if getattr(type(loss.payload), "traced", False):
            loss.backward()
        blocked = {t if isinstance(t, str) else t.name for t in no_grad_set or ()}
        pairs = [(p, g) for p, g in self._gradients(parameters) if p.name not in blocked]
        if not pairs:
            raise RuntimeError("minimize: no parameter has a gradient; call loss.backward() first")
        self.apply_gradients(pairs)
        return None, pairs

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

    # ----------------------------------------------------------------------------------------------- learning rate
    def get_lr(self) -> float:
        """The current learning rate."""
        return self._learning_rate() if isinstance(self._learning_rate, LRScheduler) else float(self._learning_rate)

    def set_lr(self, value: float) -> None:
        """Another learning rate from now on.

        Raises: RuntimeError if a schedule sets it.
        """
        if isinstance(self._learning_rate, LRScheduler):
            raise RuntimeError(f"set_lr: the learning rate is set by a {type(self._learning_rate).__name__}, which "
                               "would undo this at its next step(); use set_lr_scheduler, or make the optimizer with "
                               "a number")
        self._learning_rate = float(value)
        if self._scalars is not None:
            lr = self._scalars[0]
            lr.payload = np.array(value, lr.payload.dtype)

    def set_lr_scheduler(self, scheduler: LRScheduler) -> None:
        """Let a schedule set the learning rate from now on."""
        if isinstance(self._learning_rate, LRScheduler) and self._scalars is not None:
            self._learning_rate.unfollow(self._scalars[0])
        self._learning_rate = scheduler
        if self._scalars is not None:
            scheduler.follow(self._scalars[0])

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


def _shared(group: Group) -> bool:
    """Whether the gradients of a group are clipped together with those of other ranks."""
    return getattr(group.grad_clip, "shared", False)


class _Cache(dict):
    """A dict that makes what it lacks: derived scalars, one operator per distinct value and step."""

    def __init__(self, make: Any):
        self.make = make

    def __missing__(self, key: Any) -> Any:
        self[key] = found = self.make(key)
        return found


def replace(x: Tensor, new: Tensor) -> None:
    """The handle x takes new values.  Where no other handle shares its memory, that memory is simply let go."""
    if x.storage is None and x.view_of is None and x.views is None:
        x.payload = new.payload
    else:
        rebind(x, new, "optimizer step")
