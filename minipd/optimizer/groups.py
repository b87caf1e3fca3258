"""Which parameters an optimizer has, and with which options: one group, or several with options of their own."""

from __future__ import annotations

from typing import Any, NamedTuple

from minipd.framework.tensor import Tensor

__all__: list[str] = []

OPTIONS = ("learning_rate", "weight_decay", "grad_clip")


class Group(NamedTuple):
    """learning_rate: a factor on the optimizer's rate; None: each parameter's own (`ParamAttr.learning_rate`)."""

    params: list[Tensor]
    learning_rate: float | None
    weight_decay: Any
    grad_clip: Any


def groups_of(parameters: Any, weight_decay: Any, grad_clip: Any) -> list[Group]:
    """What an optimizer's `parameters` stands for: tensors, or dicts {"params": tensors, option: value, ...}.

    Raises: TypeError for what is neither, ValueError for unknown options, or a parameter that comes twice.
    """
    if isinstance(parameters, (Tensor, set, str)):
        raise TypeError(f"parameters: expected a list of tensors, or of dicts with 'params', got a "
                        f"{type(parameters).__name__}; write [...] around one tensor, and give sets an order")
    listed = list(parameters or [])
    dicts = [g for g in listed if isinstance(g, dict)]
    if dicts and len(dicts) != len(listed):
        raise TypeError("parameters: expected tensors only or dicts only, got both")
    groups = [_group(g, weight_decay, grad_clip) for g in dicts or [{"params": listed}]]
    seen: set[int] = set()
    for p in (p for group in groups for p in group.params):
        if not isinstance(p, Tensor):
            raise TypeError(f"parameters: expected tensors, got {type(p).__name__}")
        if id(p) in seen:
            raise ValueError(f"parameters: {p.name} comes twice; it would be updated twice in each step")
        seen.add(id(p))
    return groups


def _group(given: dict, weight_decay: Any, grad_clip: Any) -> Group:
    unknown = given.keys() - {"params", *OPTIONS}
    if "params" not in given or unknown:
        raise ValueError(f"parameter group: expected 'params' and any of {', '.join(OPTIONS)}, got "
                         f"{', '.join(map(str, given))}")
    params = given["params"]
    return Group([params] if isinstance(params, Tensor) else list(params), given.get("learning_rate"),
                 given.get("weight_decay", weight_decay), given.get("grad_clip", grad_clip))
