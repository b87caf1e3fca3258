"""A layer's state_dict, and loading one: all of it fits, or nothing is changed and the error says what does not."""

from __future__ import annotations

import difflib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from minipd.framework import dtype as dtypes
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.nn.hooks import HookRemoveHelper, Hooks

__all__: list[str] = []

LISTED = 8      # how many names an error spells out


PART = ", or load a part with load_state_dict(..., strict=False)"


class Keys(NamedTuple):
    """What `load_state_dict` returns: names that were not given, and given names that the layer does not have."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Stateful:
    """The part of `Layer` that gives its state away and takes one in."""

    _state_hooks: Hooks | None = None

    def register_state_dict_hook(self, hook: Callable) -> HookRemoveHelper:
        """Call `hook(state)` with each state_dict that this layer makes, before it is returned; it may change it."""
        self._state_hooks = self._state_hooks or Hooks()
        return self._state_hooks.add(hook)

    def state_dict(self, destination: Any = None, include_sublayers: bool = True, structured_name_prefix: str = "",
                   use_hook: bool = True, keep_vars: bool = True) -> OrderedDict[str, Tensor]:
        """Name -> tensor for all parameters and persistable buffers: the tensors themselves, not copies.

        A tensor that two layers share comes under both names.
        destination: a dict to put them into.  keep_vars: False gives tensors on the same memory without gradients.
        """
        return self._collect(destination, include_sublayers, structured_name_prefix, use_hook, keep_vars,
                             lambda layer, name: layer._buffer_names[name])

    def to_static_state_dict(self, destination: Any = None, include_sublayers: bool = True,
                             structured_name_prefix: str = "", use_hook: bool = True,
                             keep_vars: bool = True) -> OrderedDict[str, Tensor]:
        """`state_dict` with all buffers, also those that are not persistable: what a program of the layer needs."""
        return self._collect(destination, include_sublayers, structured_name_prefix, use_hook, keep_vars,
                             lambda layer, name: True)

    def _collect(self: Any, destination: Any, include_sublayers: bool, prefix: str, use_hook: bool, keep_vars: bool,
                 wanted: Callable[[Any, str], bool]) -> OrderedDict[str, Tensor]:
        out = OrderedDict() if destination is None else destination
        own = {**self._parameters, **{k: v for k, v in self._buffers.items() if wanted(self, k)}}
        out.update((prefix + k, v if keep_vars else v.detach()) for k, v in own.items())
        if include_sublayers:
            for name, sub in self._sub_layers.items():
                sub._collect(out, True, f"{prefix}{name}.", use_hook, keep_vars, wanted)
        if use_hook and self._state_hooks:
            for hook, *_ in self._state_hooks.entries:
                hook(out)
        return out

    def set_state_dict(self, state_dict: Any, use_structured_name: bool = True) -> tuple[list[str], list[str]]:
        """Give parameters and buffers the values of a `state_dict` (Tensors or arrays).

        Paddle warns about names that do not fit and goes on; here nothing is left at its first values by mistake:
        `load_state_dict(..., strict=False)` is there for loading a part.
        Raises: ValueError naming missing and unexpected entries, and those of another shape or dtype; nothing has been
        changed then.
        """
        own = self.state_dict(use_hook=False)
        named = own if use_structured_name else {t.name: t for t in own.values()}
        return load_state(type(self).__name__, named, state_dict)

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Keys:
        """`set_state_dict` that, unless `strict`, lets entries be missing or unexpected.  Returns both lists.

        Raises: ValueError, as `set_state_dict`, and for `assign`, which is not supported: values are copied.
        """
        if assign:
            raise ValueError("load_state_dict: expected assign=False, got True; values are copied into the parameters, "
                             "so that optimizers keep them")
        return Keys(*load_state(type(self).__name__, self.state_dict(use_hook=False), state_dict, strict))

    set_dict = load_dict = set_state_dict

    def get_extra_state(self) -> Any:
        """For a subclass that keeps more than tensors; nothing here calls it."""
        raise RuntimeError(f"{type(self).__name__} defines no get_extra_state(): it has no state but its tensors")


def load_state(owner: str, own: Mapping[str, Tensor], given: Any, strict: bool = True,
               hint: str = PART) -> tuple[list[str], list[str]]:
    """Give the tensors in `own` the values of the entries in `given` with the same names.

    Returns: the names that `given` lacks, and those that it has too many; without `strict` they are let pass.
    Raises: ValueError, before anything is changed, naming what is missing, unexpected, or of another shape or dtype.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"state of {owner}: expected a dict of name -> Tensor or array, got {type(given).__name__}")
    missing = [name for name in own if name not in given]
    unexpected = [name for name in given if name not in own]
    wrong = [f"{name}: expected {describe(own[name])}, got {describe(given[name])}" for name in own
             if name in given and not _fits(own[name], given[name])]
    problems = []
    if strict and missing:
        problems.append(f"missing {listed(missing)}")
    if strict and unexpected:
        problems.append(f"unexpected {listed(unexpected)}" + _guess(unexpected, missing))
    if wrong:
        problems.append("of another shape or dtype " + listed(wrong))
    if problems:
        raise ValueError(f"state of {owner}, {len(own)} entries: {'; '.join(problems)}.  Nothing was loaded; rename or "
                         f"convert the entries{hint if strict and not wrong else ''}")
    for name, tensor in own.items():
        if name in given:
            tensor.set_value(given[name])
    return missing, unexpected


def _fits(own: Tensor, given: Any) -> bool:
    if not hasattr(given, "shape") or not hasattr(given, "dtype"):
        return False
    return tuple(own.shape) == tuple(given.shape) and own.dtype == dtypes.to_np(given.dtype)


def listed(names: Iterable[str]) -> str:
    """
    >>> listed(["a", "b"]), listed("abcdefghij")
    ('(2): a, b', '(10): a, b, c, d, e, f, g, h, ...')
    """
    names = list(names)
    return f"({len(names)}): {', '.join(names[:LISTED])}" + (", ..." if len(names) > LISTED else "")


def _guess(unexpected: list[str], missing: list[str]) -> str:
    for name in unexpected:
        close = difflib.get_close_matches(name, missing, 1, cutoff=0.75)
        if close:
            return f" (is {name} meant for {close[0]}?)"
    return ""
