"""The core of an optimizer: one step as a function of parameters, gradients, state, learning rate and step count.

`update` changes nothing and is made of operators only.  So it serves eager mode, where `Optimizer.step()` rebinds the
results, and a traced program, which passes Values.  Learning rate and step count are 0-D tensors, so that nothing of
them is baked into a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.framework.context import using
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast, widened
from minipd.ops.creation import zeros_like
from minipd.ops.logic import logical_not, logical_or
from minipd.ops.scaling import scale
from minipd.optimizer import state as saved
from minipd.optimizer.groups import Group
from minipd.regularizer import regularizer_of

__all__: list[str] = []

Pairs = list[tuple[Tensor, Tensor]]
State = dict[str, Tensor]


class Core:
    """What a step computes.  A subclass names its `row`, and what that row keeps."""

    #: the operator of one step (`ops.update`)
    row: Any = None
    #: what the optimizer keeps per parameter, in the row's order, under Paddle's names
    state_names: tuple[str, ...] = ()
    #: numbers that Paddle keeps beside it, and that follow from the step count here
    powers: tuple[saved.Power, ...] = ()
    #: keep a float32 copy of low-precision parameters, which would otherwise lose small updates to rounding
    multi_precision = False
    #: attributes of the row, of which a group of parameters may have its own
    constants: dict[str, Any] = {}

    _groups: list[Group]
    _others: Group                  # of parameters that are in no group
    _group_of: dict[str, Group]     # by the parameter's name
    _missed: dict[str, int]         # ... in how many steps it had no gradient

    def attributes(self, param: Tensor, group: Group) -> dict[str, Any]:
        """The attributes of the row for this parameter."""
        return {**self.constants, **group.options}

    def rule(self, param: Tensor, grad: Tensor, state: State, lr: Tensor, step: Tensor, skip: Any,
             **attributes: Any) -> tuple[Tensor, State]:
        """One parameter's new value and state: a call of the row, with the attributes from `attributes`."""
        if self.row is None:
            raise NotImplementedError(f"{type(self).__name__}: an optimizer names its row, or defines rule(param, "
                                      "grad, state, lr, step, skip)")
        kept = [state[name] for name in self.state_names]
        numbers = {"step": step, "learning_rate": lr, "skip_update": skip}
        new = self.row(param, grad, *kept, *(numbers[name] for name in self.row.inputs[2 + len(kept):]), **attributes)
        if not self.row.multi:
            return new, {}
        return new[0], dict(zip(self.state_names, new[1:], strict=True))

    def first(self, name: str, like: Tensor) -> Tensor:
        """What `name` of the state of a parameter is before the first step; `like` is the parameter, widened."""
        return zeros_like(like)

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
            if group.grad_clip is not None and (at or group is not self._others and shared(group)):
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
            wide = s["fp32_master"] if "fp32_master" in s else widened(p)
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
        """What the optimizer keeps for `param` before its first step, with its placements."""
        with using(grad=False):
            wide = widened(param)
            state = {name: self.first(name, wide) for name in self.state_names}
            if wide is not param and self.multi_precision:
                state["fp32_master"] = wide
        for name, tensor in state.items():
            tensor.name, tensor.persistable = saved.state_key(param, name), True
        return state

    def _group(self, param: Tensor) -> Group:
        return self._group_of.get(param.name, self._others)


def shared(group: Group) -> bool:
    """Whether the gradients of a group are clipped together with those of other ranks."""
    return getattr(group.grad_clip, "shared", False)


class _Cache(dict):
    """A dict that makes what it lacks: derived scalars, one operator per distinct value and step."""

    def __init__(self, make: Any):
        self.make = make

    def __missing__(self, key: Any) -> Any:
        self[key] = found = self.make(key)
        return found
