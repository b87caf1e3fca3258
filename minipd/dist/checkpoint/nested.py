"""A state, a nested dict of tensors and plain values, as flat dicts, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from minipd.dist.checkpoint.sharded_weight import ShardedWeight
from minipd.framework.tensor import Tensor

__all__: list[str] = []

PLAIN = (type(None), bool, int, float, str)


Path = tuple[str, ...]
Tensors = dict[str, Tensor | ShardedWeight]


def flat(state: Any, what: str) -> tuple[Tensors, dict[Path, Any], dict[str, Path]]:
    """(tensors by key, plain values by path, the path of each key) of a nested dict; `model.w` is the key of w in
    model.

    Raises: TypeError for what cannot be saved, ValueError for two paths of one key.

    >>> flat({"model": {"step": 3}}, "save")[1]
    {('model', 'step'): 3}
    """
    tensors: Tensors = {}
    values: dict[Path, Any] = {}
    paths: dict[str, Path] = {}
    for path, x in _walk(state, (), what):
        key = ".".join(path)
        if isinstance(x, (Tensor, ShardedWeight)):
            if key in tensors:
                raise ValueError(f"{what}: expected different keys, got {path} and {paths[key]}, which both are {key}")
            tensors[key], paths[key] = x, path
        else:
            values[path] = x
    return tensors, values, paths


def _walk(x: Any, path: Path, what: str) -> Iterator[tuple[Path, Any]]:
    if isinstance(x, Mapping):
        for key, value in x.items():
            if not isinstance(key, str):
                raise TypeError(f"{what}: expected keys that are strings, got {key!r} at {'.'.join(path) or 'the top'}")
            yield from _walk(value, (*path, key), what)
    elif isinstance(x, (Tensor, ShardedWeight)) or _is_plain(x):
        yield path, x
    else:
        raise TypeError(f"{what}: expected Tensors, numbers, strings, None, or dicts and lists of them, got "
                        f"{type(x).__name__} at {'.'.join(path) or 'the top'}")


def _is_plain(x: Any) -> bool:
    return isinstance(x, PLAIN) or isinstance(x, (list, tuple)) and all(map(_is_plain, x))


def parent(state: Any, path: Path) -> Any:
    """The dict in which the value at a path is, or would be; None if there is no such dict."""
    for key in path[:-1]:
        state = state.get(key) if isinstance(state, dict) else None
    return state if isinstance(state, dict) else None
