"""Forward hooks of a layer: functions that see, and may replace, what goes in or comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__: list[str] = []


class Hooks:
    """An ordered list of hooks.  Empty, it is false: a layer without hooks does not come here."""

    def __init__(self) -> None:
        self.entries: list[tuple[Callable, bool, bool]] = []

    def __bool__(self) -> bool:
        return bool(self.entries)

    def add(self, hook: Callable, prepend: bool = False, with_kwargs: bool = False,
            always: bool = False) -> HookRemoveHelper:
        """Put a hook last, or first."""
        entry = (hook, with_kwargs, always)
        self.entries.insert(0 if prepend else len(self.entries), entry)
        return HookRemoveHelper(self, entry)

    def before(self, layer: Any, inputs: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The inputs of `forward`, after every hook."""
        for hook, with_kwargs, _ in list(self.entries):
            got = hook(layer, inputs, kwargs) if with_kwargs else hook(layer, inputs)
            if got is None:
                continue
            if not with_kwargs:
                inputs = got if isinstance(got, tuple) else (got,)
            elif isinstance(got, tuple) and len(got) == 2:
                inputs, kwargs = got
            else:
                raise TypeError(f"forward pre hook of {layer.full_name()}: expected None or (inputs, kwargs), got "
                                f"{type(got).__name__}")
        return inputs, kwargs

    def after(self, layer: Any, inputs: tuple, kwargs: dict, out: Any) -> Any:
        """The result of `forward`, after every hook."""
        for hook, with_kwargs, _ in list(self.entries):
            got = hook(layer, inputs, kwargs, out) if with_kwargs else hook(layer, inputs, out)
            out = out if got is None else got
        return out

    def after_failure(self, layer: Any, inputs: tuple, kwargs: dict) -> None:
        """`forward` has raised: call those that are always called."""
        for hook, with_kwargs, always in list(self.entries):
            if always:
                hook(layer, inputs, kwargs, None) if with_kwargs else hook(layer, inputs, None)


class HookRemoveHelper:
    """What registering a hook returns: `remove()` takes it off."""

    def __init__(self, hooks: Hooks, entry: tuple):
        self.hooks, self.entry = hooks, entry

    def remove(self) -> None:
        """Take the hook off.  Nothing happens if it is off already."""
        self.hooks.entries = [e for e in self.hooks.entries if e is not self.entry]
