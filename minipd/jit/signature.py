"""What a compiled program depends on: the key under which it is kept.

Tensors count by shape, dtype and whether they want a gradient (or by the `InputSpec` that they fit), distributed ones
by their mesh and placements too, everything else in the arguments by its value.  So do the modes in which the function
is called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.framework.dim import bind_shape, fresh_symbols
from minipd.framework.meta import Meta, describe
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.jit.paths import number
from minipd.jit.spread import place_of
from minipd.ops.creation import to_tensor
from minipd.static.input import InputSpec

__all__: list[str] = []


class Argument(Meta):
    """What an input of the program looks like: a shape (maybe with symbols), a dtype, and `stop_gradient`.

    placed: the mesh and the placements of a distributed tensor, else None.
    """

    def __init__(self, shape: tuple, dtype: np.dtype, stop_gradient: bool, placed: Any = None):
        super().__init__(shape, dtype)
        self.stop_gradient, self.placed = stop_gradient, placed


def as_tensors(tree: Any) -> Any:
    """Numpy arrays among the arguments, as tensors."""
    if isinstance(tree, np.ndarray):
        return to_tensor(tree)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*map(as_tensors, tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(map(as_tensors, tree))
    if isinstance(tree, dict):
        return {k: as_tensors(v) for k, v in tree.items()}
    return tree


def key_of(tree: Any) -> Any:
    """A hashable stand-in for nested arguments: equal only if every value that is no tensor is (1 and True differ)."""
    if isinstance(tree, Tensor):
        return Tensor
    if isinstance(tree, (list, tuple)):
        return type(tree), tuple(map(key_of, tree))
    if isinstance(tree, dict):
        return dict, tuple((k, key_of(v)) for k, v in tree.items())
    try:
        hash(tree)
    except TypeError:
        return "object", id(tree)
    return number(tree)


def quick_key(args: tuple) -> Any:
    """The key of a call with plain tensors, each given once, and nothing else; None for other calls."""
    key: list[Any] = [len(args), modes()]
    for x in args:
        if not isinstance(x, Tensor) or type(x.payload) is not np.ndarray:
            return None
        p = x.payload
        key.append((p.shape, p.dtype, x.stop_gradient))
    return tuple(key) if len(args) < 2 or len(set(map(id, args))) == len(args) else None


def aliases(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """For each tensor, the number of the first that is the same object: what is written to one is seen in the other."""
    first: dict[int, int] = {}
    return tuple([first.setdefault(id(x), i) for i, x in enumerate(tensors)])


def plain_arguments(function: Callable, args: tuple, kwargs: dict) -> dict[str, Any]:
    """The arguments of a call that are no tensors, by the names that the function has for them."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):         # the call will say so
        return {}
    return {n: v for n, v in bound.arguments.items() if not isinstance(v, Tensor)}


def modes() -> tuple:
    """What else decides what a call records."""
    ctx = current()
    return ctx.grad_enabled, ctx.default_dtype, ctx.rng.path, ctx.amp


def arguments(name: str, tensors: Sequence[Tensor],
              specs: Sequence[Any] | None) -> tuple[list[Argument], dict[str, int]]:
    """The inputs of the program for a call on these tensors, and the sizes of their open dimensions.

    A distributed tensor has no open dimensions: how it is split depends on their sizes.
    Raises: TypeError for a tensor without values; ValueError for one that does not fit its spec.
    """
    if specs is not None and len(specs) != len(tensors):
        raise ValueError(f"{name}: expected {len(specs)} tensors, one for each entry of input_spec, got {len(tensors)}")
    found, bindings = [], dict[str, int]()
    fresh = fresh_symbols(spec.shape for spec in specs or ())
    for i, x in enumerate(tensors):
        placed = place_of(x.payload)
        if placed is None and not isinstance(x.payload, np.ndarray):
            raise TypeError(f"{name}: expected tensors with values, got {x!r} as tensor {i}")
        if specs is None:
            found.append(Argument(x.payload.shape, x.payload.dtype, x.stop_gradient, placed))
            continue
        spec = specs[i]
        if spec.dtype != x.dtype:
            raise ValueError(f"{name}: expected {spec} for tensor {i}, got {describe(x.payload)}; cast it first")
        shape = tuple(next(fresh) if isinstance(d, int) and d == -1 else d for d in spec.shape)
        bind_shape(shape, x.payload.shape, bindings, f"{name}: tensor {i}")
        found.append(Argument(shape, x.payload.dtype, x.stop_gradient, placed))
    if any(argument.placed is not None for argument in found):
        return [Argument(x.payload.shape, a.dtype, a.stop_gradient, a.placed)
                for a, x in zip(found, tensors, strict=True)], {}
    return found, bindings


def input_specs(given: Any) -> list[InputSpec] | None:
    """The flat list of specs in `input_spec`; tensors stand for specs like them."""
    if given is None:
        return None
    flat: list[InputSpec] = []
    for entry in given if isinstance(given, (list, tuple)) else [given]:
        if isinstance(entry, (list, tuple)):
            flat += input_specs(entry) or []
        elif isinstance(entry, InputSpec):
            flat.append(entry)
        elif isinstance(entry, Tensor):
            flat.append(InputSpec.from_tensor(entry))
        else:
            raise TypeError(f"input_spec: expected an InputSpec or a Tensor for each tensor argument, got {entry!r}")
    return flat
