"""The state of an optimizer as a dict: what a checkpoint keeps of it.

    linear_0.w_0_moment1_0: Tensor, ...     per parameter, by the parameter's name
    step: 3                                 how many steps were made
    missed_steps: {"linear_1.w_0": 3}       parameters that had no gradient in some of them, so that their own count,
                                            which corrects the bias of moving averages, is smaller
    LR_Scheduler: {"last_epoch": 3, ...}    if the learning rate follows a schedule
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework.tensor import Tensor
from minipd.nn.state import listed, load_state
from minipd.optimizer.lr import LRScheduler

__all__: list[str] = []

PLAIN = ("step", "missed_steps", "LR_Scheduler")


def state_key(param: Tensor, name: str) -> str:
    """The name of one tensor of a parameter's state, as in Paddle: `linear_0.w_0_moment1_0`."""
    return f"{param.name}_{name}_0"


def state_dict(optimizer: Any) -> dict[str, Any]:
    """The state of `optimizer`: the tensors themselves, not copies."""
    out: dict[str, Any] = {t.name: t for state in optimizer._state.values() for t in state.values()}
    out["step"] = int(optimizer.scalars()[1])
    if optimizer._missed:
        out["missed_steps"] = dict(optimizer._missed)
    if isinstance(optimizer._learning_rate, LRScheduler):
        out["LR_Scheduler"] = optimizer._learning_rate.state_dict()
    return out


def set_state_dict(optimizer: Any, given: dict[str, Any]) -> None:
    """Give `optimizer` the state `given`; ValueError, with nothing loaded, if it is not such an optimizer's."""
    who = type(optimizer).__name__
    steps, missed = given.get("step"), dict(given.get("missed_steps", {}))
    if steps is None:
        raise ValueError(f"state of {who}: expected an entry 'step', got {listed(map(str, given))}; is this the state "
                         "of an optimizer?")
    scheduled = isinstance(optimizer._learning_rate, LRScheduler)
    if scheduled != ("LR_Scheduler" in given):
        raise ValueError(f"state of {who}: expected {'an' if scheduled else 'no'} entry 'LR_Scheduler', because the "
                         f"learning rate is {'a schedule' if scheduled else 'a number'}; make the optimizer as it was "
                         "made when the state was saved")
    tensors = {name: t for name, t in given.items() if name not in PLAIN}
    fresh = {p.name: optimizer._state.get(p.name) or optimizer.init_state(p) for p in optimizer._parameter_list}
    for name, state in list(fresh.items()):
        if int(steps) == missed.get(name, 0) and not any(t.name in tensors for t in state.values()):
            del fresh[name]                             # it never had a gradient
    before = optimizer._learning_rate.state_dict() if scheduled else None
    if scheduled:
        optimizer._learning_rate.set_state_dict(given["LR_Scheduler"])
    try:
        load_state(f"{who} (entries are named after the parameters, whose generated names count the layers made "
                   "before; ParamAttr(name=...) fixes them)",
                   {t.name: t for s in fresh.values() for t in s.values()}, tensors, hint="")
    except ValueError:
        if scheduled:
            optimizer._learning_rate.set_state_dict(before)
        raise
    step = optimizer.scalars()[1]
    step.payload = np.array(int(steps), step.payload.dtype)
    optimizer._state, optimizer._missed = fresh, missed
