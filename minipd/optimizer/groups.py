"""Which parameters an optimizer has, and with which options: one group, or several with options of their own."""

from __future__ import annotations

from typing import Any, NamedTuple

from minipd.framework.tensor import Tensor

__all__: list[str] = []

OPTIONS = ("learning_rate", "weight_decay", "grad_clip")


class Group(NamedTuple):
    """learning_rate: a factor on the optimizer's rate; None: each parameter's own (`ParamAttr.learning_rate`).
    options: numbers of the optimizer's that differ for these parameters."""

    params: list[Tensor]
    learning_rate: float | None
    weight_decay: Any
    grad_clip: Any
    options: dict[str, Any]


def groups_of(parameters: Any, weight_decay: Any, grad_clip: Any, constants: dict[str, Any]) -> list[Group]:
    """What an optimizer's `parameters` stands for: tensors, or dicts {"params": tensors, option: value, ...}.

    constants: further options that there are, by name.

    Raises: TypeError for what is neither, ValueError for unknown options, or a parameter that comes twice.
    """
    if isinstance(parameters, (Tensor, set, str)):
        raise TypeError(f"parameters: expected a list of tensors, or of dicts with 'params', got a "
                        f"{type(parameters).__name__}; write [...] around one tensor, and give sets an order")
    listed = list(parameters or [])
    dicts = [g for g in listed if isinstance(g, dict)]
    if dicts and len(dicts) != len(listed):
        raise TypeError("parameters: expected tensors only or dicts only, got both")
    groups = [_group(g, weight_decay, grad_clip, constants) for g in dicts or [{"params": listed}]]
    seen: set[int] = set()
    for p in (p for group in groups for p in group.params):
        if not isinstance(p, Tensor):
            raise TypeError(f"parameters: expected tensors, got {type(p).__name__}")
        if id(p) in seen:
            raise ValueError(f"parameters: {p.name} comes twice; it would be updated twice in each step")
        seen.add(id(p))
    return groups


def _group(given: dict, weight_decay: Any, grad_clip: Any, constants: dict[str, Any]) -> Group:
    known = (*OPTIONS, *(name for name in constants if name not in OPTIONS))
    unknown = given.keys() - {"params", *known}
    if "params" not in given or unknown:
        raise ValueError(f"parameter group: expected 'params' and any of {', '.join(known)}, got "
                         f"{', '.join(map(str, given))}")
    params = given["params"]
    return Group([params] if isinstance(params, Tensor) else list(params), given.get("learning_rate"),
                 given.get("weight_decay", weight_decay), given.get("grad_clip", grad_clip),
                 {name: number("parameter group", name, given[name]) for name in constants if name in given})


def number(owner: str, name: str, given: Any) -> Any:
    """A constant of an optimizer as a plain value: a tensor of one element stands for its number.

    Raises: TypeError for what is none.
    """
    if isinstance(given, (bool, tuple)):
        return given
    try:
        return float(given)
    except (TypeError, ValueError):
        raise TypeError(f"{owner}: expected {name} to be a number, got {given!r}") from None
