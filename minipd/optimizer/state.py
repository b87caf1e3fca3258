"""The state of an optimizer as a dict: what a checkpoint keeps of it, under Paddle's names.

    linear_0.w_0_moment1_0: Tensor, ...         per parameter, by the parameter's name
    linear_0.w_0_beta1_pow_acc_0: Tensor, ...   what Paddle counts steps by: written for it, and read where `step` is
                                                missing, as in a file of Paddle's own
    master_weights: {"linear_0.w_0": Tensor}    the float32 copies of low-precision parameters
    LR_Scheduler: {"last_epoch": 3, ...}        if the learning rate follows a schedule
    step: 3                                     how many steps were made
    missed_steps: {"linear_1.w_0": 3}           parameters that had no gradient in some of them, so that their own
                                                count, which corrects the bias of moving averages, is smaller
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from minipd.framework.tensor import Tensor
from minipd.nn.state import listed, load_state

__all__: list[str] = []

PLAIN = ("step", "missed_steps", "LR_Scheduler", "master_weights")
MASTER = "fp32_master"
FORGOTTEN = 10 ** 6     # a power that is 0 by now: so many steps that 1 - power is 1


class Power(NamedTuple):
    """A number that Paddle keeps per parameter, and that follows from how many steps the parameter has made.

    value(attributes of the row, steps); steps: its inverse, None where it is of no use for that.  like_param: Paddle
    keeps it once for each element.
    """

    name: str
    value: Callable[[dict, int], float]
    steps: Callable[[dict, float], int] | None = None
    like_param: bool = False
    dtype: Any = None


def power(name: str, base: Callable[[dict], float], ahead: int = 0, like_param: bool = False) -> Power:
    """base^(steps + ahead)."""
    def steps(attrs: dict, value: float) -> int:
        return round(math.log(value) / math.log(base(attrs))) - ahead if value > 1e-30 else FORGOTTEN
    return Power(name, lambda attrs, made: base(attrs) ** (made + ahead), steps, like_param)


def state_key(param: Tensor, name: str) -> str:
    """The name of one tensor of a parameter's state, as in Paddle: `linear_0.w_0_moment1_0`."""
    return f"{param.name}_{name}_0"


def state_dict(optimizer: Any) -> dict[str, Any]:
    """The state of `optimizer`: the tensors themselves, not copies."""
    out: dict[str, Any] = {t.name: t for state in optimizer._state.values() for n, t in state.items() if n != MASTER}
    steps = int(optimizer.scalars()[1])
    for p in optimizer._parameter_list:
        if p.name in optimizer._state:
            out.update(_powers(optimizer, p, steps - optimizer._missed.get(p.name, 0)))
    masters = {name: state[MASTER] for name, state in optimizer._state.items() if MASTER in state}
    if masters:
        out["master_weights"] = masters
    out["step"] = steps
    if optimizer._missed:
        out["missed_steps"] = dict(optimizer._missed)
    if optimizer.rate.schedule is not None:
        out["LR_Scheduler"] = optimizer.rate.schedule.state_dict()
    return out


def _powers(optimizer: Any, param: Tensor, steps: int) -> dict[str, Tensor]:
    attrs, out = optimizer.attributes(param, optimizer._group(param)), {}
    for p in optimizer.powers:
        shape = tuple(param.shape) if p.like_param else (1,)
        wide = np.float64 if param.payload.dtype == np.float64 else np.float32
        out[state_key(param, p.name)] = Tensor(np.full(shape, p.value(attrs, steps), p.dtype or wide))
    return out


def _steps_of(optimizer: Any, param: Tensor, given: Mapping[str, Any]) -> int:
    """How many steps a parameter has made, by the powers in a state of Paddle's."""
    attrs, found = optimizer.attributes(param, optimizer._group(param)), 0
    for p in optimizer.powers:
        value = given.get(state_key(param, p.name))
        if value is not None and p.steps is not None:
            found = p.steps(attrs, float(np.asarray(value).flat[0]))
            if found != FORGOTTEN:
                break
    return found


def _renamed(given: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    """Entries that end in another number take the name that is wanted: Paddle counts the optimizers that have been
    made for a parameter (`linear_0.w_0_moment1_1`)."""
    out = {}
    for key, value in given.items():
        stem, _, n = key.rpartition("_")
        first = f"{stem}_0"
        out[first if n.isdecimal() and key not in names and first in names and first not in given else key] = value
    return out


def set_state_dict(optimizer: Any, given: dict[str, Any]) -> None:
    """Give `optimizer` the state `given`; ValueError, with nothing loaded, if it is not such an optimizer's."""
    who, schedule = type(optimizer).__name__, optimizer.rate.schedule
    params = optimizer._parameter_list
    given = _renamed(given, {state_key(p, name) for p in params
                             for name in (*optimizer.state_names, *(n.name for n in optimizer.powers))})
    if (schedule is not None) != ("LR_Scheduler" in given):
        raise ValueError(f"state of {who}: expected {'no' if schedule is None else 'an'} entry 'LR_Scheduler', because "
                         f"the learning rate is {'a number' if schedule is None else 'a schedule'}; make the optimizer "
                         f"as it was made when the state was saved; got {listed(map(str, given))}")
    if "step" in given:
        steps, missed = int(given["step"]), dict(given.get("missed_steps", {}))
    else:
        made = {p.name: _steps_of(optimizer, p, given) for p in params}
        steps = max(made.values(), default=0)
        missed = {name: steps - n for name, n in made.items() if n < steps}
    derived = {state_key(p, n.name) for p in params for n in optimizer.powers}
    tensors = {name: t for name, t in given.items() if name not in PLAIN and name not in derived}
    tensors |= {f"{name}_{MASTER}_0": t for name, t in given.get("master_weights", {}).items()}
    fresh = {p.name: optimizer._state.get(p.name) or optimizer.init_state(p) for p in params}
    for name, state in list(fresh.items()):
        if steps == missed.get(name, 0) and not any(t.name in tensors for t in state.values()):
            del fresh[name]                             # it never had a gradient
    before = None if schedule is None else schedule.state_dict()
    if schedule is not None:
        schedule.set_state_dict(given["LR_Scheduler"])
    try:
        load_state(f"{who} (entries are named after the parameters, whose generated names count the layers made "
                   "before; ParamAttr(name=...) fixes them)",
                   {t.name: t for s in fresh.values() for t in s.values()}, tensors, hint="")
    except ValueError:
        if schedule is not None:
            schedule.set_state_dict(before)
        raise
    step = optimizer.scalars()[1]
    step.payload = np.array(steps, step.payload.dtype)
    optimizer._state, optimizer._missed = fresh, missed
