"""Rules of operators that move data: transpose, squeeze, unsqueeze, expand, slices, concat, split, tril and triu.

They are linear and round nothing, so a Partial of any kind passes.  A dimension along which data moves from rank to
rank (the axis of a concat, a sliced axis) is not split.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from minipd.dist.sharding import local_window
from minipd.dist.spmd.notation import Notation, broadcast, letters, letters_onto, pointwise, replace, shape_of
from minipd.dist.spmd.table import spmd
from minipd.framework.dim import same

__all__: list[str] = []


def _moves(ins: tuple[str, ...], outs: tuple[str, ...], **how: Any) -> Notation:
    return Notation(ins, outs, linear=(tuple(range(len(ins))),), carries="any", **how)


@spmd("transpose")
def transpose(x: Any, *, perm: tuple[int, ...]) -> Notation:
    word = letters(len(x.shape))
    return _moves((word,), ("".join(word[p] for p in perm),))


@spmd("squeeze")
def squeeze(x: Any, *, axis: tuple[int, ...]) -> Notation:
    word = "".join("1" if i in axis else letter for i, letter in enumerate(letters(len(x.shape))))
    return _moves((word,), (word.replace("1", ""),))


@spmd("unsqueeze")
def unsqueeze(x: Any, *, axis: tuple[int, ...]) -> Notation:
    """`axis` counts in the result."""
    word = letters(len(x.shape))
    rest = iter(word)
    return _moves((word,), ("".join("1" if i in axis else next(rest) for i in range(len(word) + len(axis))),))


@spmd("expand")
def expand(x: Any, *, shape: tuple) -> Notation:
    """The dimensions that grow, or are new, are split by nobody: x does not have them."""
    (word, _), out = broadcast(tuple(x.shape), tuple(shape))

    def local(attrs: dict, inputs: tuple, outputs: tuple, mesh: Any, rank: int) -> dict:
        return {**attrs, "shape": local_window(shape, mesh, outputs[0], rank)[0]}

    return _moves((word,), (out,), local=local)


@spmd("expand_as")
def expand_as(x: Any, target: Any) -> Notation:
    """The result is placed like `target`, and x comes to it: it is the smaller one, cheaper to move now than later."""
    return pointwise(x, target, linear=((0,),), carries="any", shape_only=(1,), lead=1)


def _cuts(shape: tuple, axes: tuple[int, ...], starts: tuple, ends: tuple, strides: tuple) -> Iterator[tuple]:
    """(axis, whether it is cut at all) for each axis named: 0 to the end in steps of 1 takes all of it."""
    for axis, start, end, stride in zip(axes, starts, ends, strides, strict=True):
        yield axis, not (same(start, 0) and same(end, shape[axis]) and stride == 1)


def _sliced(x: Any, axes: tuple[int, ...], starts: tuple, ends: tuple, strides: tuple) -> tuple[str, str, Any]:
    """(letters of x, of the slice, local): an axis that is cut is whole, with its own letter on each side."""
    word = letters(len(x.shape))
    out = word
    whole = tuple(axis for axis, cut in _cuts(x.shape, axes, starts, ends, strides) if not cut)
    for axis in axes:
        if axis not in whole:
            out = replace(out, axis, word[axis].upper())

    def local(attrs: dict, inputs: tuple, outputs: tuple, mesh: Any, rank: int) -> dict:
        if not whole:
            return attrs
        shape = local_window(x.shape, mesh, inputs[0], rank)[0]
        return {**attrs, "ends": tuple(shape[a] if a in whole else end for a, end in zip(axes, ends, strict=True))}

    return word, out, local


def _cut_letters(word: str, out: str) -> str:
    return "".join(a + b for a, b in zip(word, out, strict=True) if a != b)


@spmd("slice")
def slice_(x: Any, *, axes: tuple, starts: tuple, ends: tuple) -> Notation:
    return strided_slice(x, axes=axes, starts=starts, ends=ends, strides=(1,) * len(axes))


@spmd("strided_slice")
def strided_slice(x: Any, *, axes: tuple, starts: tuple, ends: tuple, strides: tuple) -> Notation:
    """An axis that is named is whole, with a letter of its own on each side.  (`x[:, 1]` does not name the first.)"""
    word = letters(len(x.shape))
    out = "".join(letter.upper() if i in axes else letter for i, letter in enumerate(word))
    return _moves((word,), (out,), whole=_cut_letters(word, out))


@spmd("set_value")
def set_value(x: Any, value: Any, *, axes: tuple, starts: tuple, ends: tuple, strides: tuple) -> Notation:
    """x with the slice replaced by `value`, which broadcasts to it."""
    word, out, local = _sliced(x, axes, starts, ends, strides)
    value_word = letters_onto(shape_of(value), tuple(x.shape), out)
    return _moves((word, value_word), (word,), whole=_cut_letters(word, out), local=local)


@spmd("concat")
def concat(*xs: Any, axis: int) -> Notation:
    word = replace(letters(len(xs[0].shape)), axis, "z")
    return _moves((word,) * len(xs), (word,), whole="z", spread=True)


@spmd("split")
def split(x: Any, *, sections: tuple, axis: int) -> Notation:
    word = replace(letters(len(x.shape)), axis, "z")
    return _moves((word,), (word,) * len(sections), whole="z")


@spmd("tril", "triu")
def triangle(x: Any, *, diagonal: int = 0) -> Notation:
    word = letters(len(x.shape))
    return Notation((word,), (word,), whole=word[-2:], linear=((0,),))
