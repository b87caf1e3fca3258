"""Einstein's notation for sums of products: `einsum("bij,bjk->bik", x, y)`.

Taken apart into operators that the library has: dimensions that no other operand or the result names are summed first,
a dimension named twice in one operand becomes its diagonal, and operands are joined one after the other, each time by
one matrix product.  So it has gradients of every order, and can be traced and sharded.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from minipd.framework.dim import prod, same
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.framework.whole import aligned, whole
from minipd.ops.broadcast import expand
from minipd.ops.linalg import matmul
from minipd.ops.matrices.parts import diagonal_of
from minipd.ops.promotion import promoted
from minipd.ops.shapes import agree

__all__ = ["einsum"]


@whole
def einsum(equation: str, *operands: Tensor) -> Tensor:
    """The sum of products that `equation` writes down.

    Each operand has a word, a letter for each dimension; letters that the result's word (after "->") lacks are summed
    over.  "..." stands for any further dimensions, which broadcast.  Without "->" the result has the letters that occur
    once, in alphabetical order, after those of "...".  Spaces do not count.
    Raises: ValueError for an equation that does not fit the operands, or for sizes that differ.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> einsum("ij,jk->ik", x, x).tolist(), einsum("ii->", x).item(), einsum("i...->...", x).tolist()
    ([[7.0, 10.0], [15.0, 22.0]], 5.0, [4.0, 6.0])
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    words, result = _parse(equation, operands)
    sizes = _sizes(equation, words, operands)
    xs = list(aligned(tuple(map(functools.partial(_placed, sizes), words, operands)), *operands))
    for i in range(1, len(xs)):
        xs[0], xs[i] = promoted("einsum", xs[0], xs[i])
    xs = [xs[0], *(promoted("einsum", xs[0], v)[1] for v in xs[1:])]

    factors = [_single(x, word, sizes) for x, word in zip(xs, words, strict=True)]
    while len(factors) > 1:
        (x, a), (y, b), *rest = factors
        wanted = set(result).union(*(word for _, word in rest))
        factors = [_pair(x, a, y, b, wanted, sizes), *rest]
    x, word = factors[0]
    x, word = _summed(x, word, set(result))
    return x.transpose([word.index(letter) for letter in result]) if word != result else x


# ------------------------------------------------------------------------------------------------ the equation
def _parse(equation: str, operands: Sequence[Tensor]) -> tuple[list[str], str]:
    """The words of the operands and of the result, where digits stand for the dimensions of "..."."""
    if not isinstance(equation, str):
        raise TypeError(f"einsum: expected an equation such as 'ij,jk->ik', got {equation!r}")
    left, arrow, right = equation.replace(" ", "").partition("->")
    words = left.split(",")
    if len(words) != len(operands):
        raise ValueError(f"einsum: expected an operand for each of the {len(words)} words left of '->' in "
                         f"{equation!r}, got {len(operands)}")
    extra = [x.ndim - len(word.replace("...", "")) for word, x in zip(words, operands, strict=True)]
    for word, x, n in zip(words, operands, extra, strict=True):
        if n < 0 or n > 0 and "..." not in word:
            raise ValueError(f"einsum: expected an operand of {x.ndim - n} dimensions for {word!r} in {equation!r}, "
                             f"got {describe(x)}")
    most = max((n for word, n in zip(words, extra, strict=True) if "..." in word), default=0)
    dots = "".join(chr(ord("0") + i) for i in range(most))
    full = [word.replace("...", dots[most - n:]) for word, n in zip(words, extra, strict=True)]
    letters = "".join(full)
    if not arrow:
        right = ("..." if dots else "") + "".join(sorted(c for c in set(letters) - set(dots) if letters.count(c) == 1))
    result = right.replace("...", dots)
    for word in (*full, result):
        for c in word:
            if not (c.isalpha() and c.isascii() or c in dots):
                raise ValueError(f"einsum: expected letters and '...', got {c!r} in {equation!r}")
    for c in result:
        if c not in letters or result.count(c) > 1:
            raise ValueError(f"einsum: expected each letter of the result once, and among those of the operands, got "
                             f"{c!r} in {equation!r}")
    return full, result


def _sizes(equation: str, words: list[str], operands: Sequence[Tensor]) -> dict[str, Any]:
    """The size of each letter; size 1 repeats."""
    sizes: dict[str, Any] = {}
    for word, x in zip(words, operands, strict=True):
        for letter, d in zip(word, x.payload.shape, strict=True):
            known = sizes.setdefault(letter, d)
            if same(known, 1):
                sizes[letter] = d
            elif not same(d, 1) and not agree(d, known, f"einsum: dimension {letter}"):
                raise ValueError(f"einsum: {letter!r} in {equation!r} is {known} in one operand and {d} in another: "
                                 f"got {', '.join(map(describe, operands))}")
    return sizes


def _placed(sizes: dict[str, Any], word: str, x: Tensor) -> str:
    """A word as `aligned` wants it: each letter once, "1" for a size that repeats, and signs instead of digits."""
    return "".join("1" if c in word[:i] or same(d, 1) and not same(sizes[c], 1) else
                   chr(ord(c) + 256) if c.isdigit() else c
                   for i, (c, d) in enumerate(zip(word, x.payload.shape, strict=True)))


# ------------------------------------------------------------------------------------------------ factors
def _single(x: Tensor, word: str, sizes: dict[str, Any]) -> tuple[Tensor, str]:
    """The operand with each of its letters once."""
    for letter in word:
        while word.count(letter) > 1:
            i = word.index(letter)
            k = word.index(letter, i + 1)
            x = x.transpose([*(a for a in range(x.ndim) if a not in (i, k)), i, k])
            size = sizes[letter]
            x = expand(x, [*x.payload.shape[:-2], size, size])
            x = diagonal_of(x)
            word = word[:i] + word[i + 1:k] + word[k + 1:] + letter
    return x, word


def _summed(x: Tensor, word: str, wanted: set[str]) -> tuple[Tensor, str]:
    """x without the letters that nobody wants any more."""
    axes = [i for i, letter in enumerate(word) if letter not in wanted]
    return (x.sum(axes) if axes else x), "".join(letter for letter in word if letter in wanted)


def _pair(x: Tensor, a: str, y: Tensor, b: str, wanted: set[str], sizes: dict[str, Any]) -> tuple[Tensor, str]:
    """The product of two factors, summed over what both have and nobody wants: one batched matrix product.

    x: [shared, own, summed] times y: [shared, summed, own], each group of letters as one dimension.
    """
    x, a = _summed(x, a, wanted | set(b))
    y, b = _summed(y, b, wanted | set(a))
    both = [letter for letter in a if letter in b]
    shared, inside = [c for c in both if c in wanted], [c for c in both if c not in wanted]
    own_x, own_y = [c for c in a if c not in b], [c for c in b if c not in a]
    left = _grouped(x, a, (shared, own_x, inside), set(both), sizes)
    right = _grouped(y, b, (shared, inside, own_y), set(both), sizes)
    out = matmul(left, right)
    word = "".join([*shared, *own_x, *own_y])
    return out.reshape([sizes[c] for c in word]), word


def _grouped(x: Tensor, word: str, groups: tuple[list[str], ...], spread: set[str], sizes: dict[str, Any]) -> Tensor:
    """x with each group of letters as one dimension; letters in `spread` repeat to their size."""
    order = [c for group in groups for c in group]
    x = x.transpose([word.index(c) for c in order])
    full = [sizes[c] if c in spread else d for c, d in zip(order, x.payload.shape, strict=True)]
    if not all(map(same, full, x.payload.shape)):
        x = expand(x, full)
    return x.reshape([prod(sizes[c] for c in group) for group in groups])
