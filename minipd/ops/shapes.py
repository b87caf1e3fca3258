"""What shape rules share: broadcasting, axes, dtypes.  Dimensions may be ints or symbolic everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.dim import broadcast, broadcast_dims, is_symbolic, require_equal, same
from minipd.framework.meta import Meta, describe
from minipd.framework.spelling import SpelledInt, SpelledTuple, as_given

__all__: list[str] = []


def shape_of(x: Any) -> tuple:
    """The shape of an operand; a Python number has none."""
    return x.shape if hasattr(x, "shape") else ()


def agree(got: Any, expected: Any, what: str) -> bool:
    """Whether two dimensions are equal.  Ints are compared; of symbols it is recorded as an assumption of the trace.

    Raises: ValueError for symbols that can never be equal, or outside of a trace.
    """
    if same(got, expected):
        return True
    if is_symbolic(got) or is_symbolic(expected):
        require_equal(got, expected, what)
        return True
    return False


def shapes_agree(got: tuple, expected: tuple, what: str) -> bool:
    """`agree` for whole shapes."""
    return got == expected or len(got) == len(expected) and all(
        [agree(g, e, f"{what}: dimension {i}") for i, (g, e) in enumerate(zip(got, expected, strict=True))])


def broadcast_shapes(what: str, *shapes: tuple) -> tuple:
    """The common shape, dimensions aligned to the right, 1 stretching to anything; two symbols have the dimension
    `Broadcast(S0,S1)`.

    Raises: ValueError naming `what` and the first dimension that does not fit.

    >>> broadcast_shapes("add", (4, 1), (6,))
    (4, 6)
    """
    first = shapes[0]
    if all(s == first for s in shapes):
        return first
    n = max(map(len, shapes))
    out = []
    for i in range(n):
        d: Any = 1
        for s in shapes:
            k = i - n + len(s)
            if k < 0 or same(s[k], 1):
                continue
            if same(d, 1):
                d = s[k]
            elif is_symbolic(d) or is_symbolic(s[k]):
                d = broadcast_dims(f"{what}: dimension {i - n}", d, s[k])
            elif d != s[k]:
                raise ValueError(f"{what}: cannot broadcast shapes {' and '.join(str(list(s)) for s in shapes)}: "
                                 f"dimension {i - n} is {d} in one and {s[k]} in another; sizes must be equal or 1")
        out.append(d)
    return tuple(out)


def stretches(what: str, shape: tuple, target: tuple) -> bool:
    """Whether a tensor of this shape broadcasts to the target.  Of different symbols it is recorded that they are
    equal; one stretches to a broadcast size that it is part of.

    >>> stretches("expand", (1, 3), (2, 3)), stretches("expand", (2,), (1,))
    (True, False)
    """
    lead = len(target) - len(shape)
    return lead >= 0 and all(same(d, 1) or is_symbolic(t) and same(broadcast(d, t), t) or agree(d, t, what)
                             for d, t in zip(shape, target[lead:], strict=True))


def common_dtype(what: str, *xs: Any) -> np.dtype:
    """The dtype of an operation on operands that the public function has already promoted; Python numbers are weak."""
    found = [x.dtype for x in xs if hasattr(x, "dtype")]
    if not found:
        return dtypes.get_default_dtype_np() if any(isinstance(x, float) for x in xs) else dtypes.int64.np
    for d in found[1:]:
        if d != found[0]:
            raise TypeError(f"{what}: expected operands of one dtype, got {', '.join(map(describe, xs))}; "
                            "cast one of them")
    return found[0]


def elementwise(what: str, *xs: Any) -> Meta:
    """The meta of a broadcasting operation."""
    return Meta(broadcast_shapes(what, *map(shape_of, xs)), common_dtype(what, *xs))


def require_alike(what: str, x: Any, y: Any) -> None:
    """Raise ValueError unless two tensors have one shape and dtype; symbols as in `agree`."""
    if y.dtype != x.dtype or not shapes_agree(tuple(y.shape), tuple(x.shape), what):
        raise ValueError(f"{what}: expected two tensors of one shape and dtype, got {describe(x)} and {describe(y)}")


def require_floating(what: str, x: Any) -> None:
    """Raise TypeError unless x is a floating tensor."""
    if x.dtype not in dtypes.FLOATS:
        raise TypeError(f"{what}: expected a floating tensor, got {describe(x)}; cast it first, x.astype('float32')")


def require_inexact(what: str, x: Any) -> None:
    """Raise TypeError unless x is a floating or complex tensor."""
    if x.dtype not in dtypes.INEXACT:
        raise TypeError(f"{what}: expected a floating or complex tensor, got {describe(x)}; cast it first, "
                        "x.astype('float32')")


def require_numbers(what: str, *xs: Any) -> None:
    """Raise TypeError if an operand is a bool tensor."""
    for x in xs:
        if getattr(x, "dtype", None) == dtypes.bool.np:
            raise TypeError(f"{what}: expected numbers, got {describe(x)}; cast the truth values first, "
                            "x.astype('int64')")


def require_real(what: str, *xs: Any) -> None:
    """Raise TypeError if an operand is a bool or complex tensor: neither is rounded, nor divided with remainder."""
    require_numbers(what, *xs)
    for x in xs:
        if getattr(x, "dtype", None) in dtypes.COMPLEX or type(x) is complex:
            raise TypeError(f"{what}: expected real numbers, got {describe(x) if hasattr(x, 'dtype') else x}")


def a_number(what: str, name: str, value: Any) -> Any:
    """A parameter that must be a real number; numpy's are, and tensors of one element.

    Raises: TypeError if it is something else.

    >>> a_number("clip", "min", 0.5)
    0.5
    """
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, np.generic) or getattr(value, "size", 0) == 1 and hasattr(value, "item"):
        return a_number(what, name, value.item())
    raise TypeError(f"{what}: expected {name} to be a number, got {value!r}")


def require_bits(what: str, *xs: Any) -> None:
    """Raise TypeError unless every operand is an int or bool tensor, or a Python int or bool."""
    for x in xs:
        if x.dtype not in dtypes.INTS and x.dtype != dtypes.bool.np if hasattr(x, "dtype") else not isinstance(x, int):
            raise TypeError(f"{what}: expected an int or bool tensor, got {describe(x) if hasattr(x, 'dtype') else x}; "
                            "only these have bits to work on")


def normalize_axis(what: str, axis: Any, ndim: int) -> int:
    """One axis, counted from the front.

    Raises: TypeError if it is no int, ValueError if it is out of range.

    >>> normalize_axis("softmax", -1, 3)
    2
    """
    if (type(axis) is int or type(axis) is SpelledInt) and 0 <= axis < ndim:
        return axis
    try:
        a = axis.__index__()
    except (AttributeError, TypeError):                 # numpy's arrays have one that refuses
        raise TypeError(f"{what}: expected axis to be an int, got {axis!r}") from None
    if not -ndim <= a < ndim and not (ndim == 0 and a in (0, -1)):
        if not ndim:
            raise ValueError(f"{what}: expected a tensor that has axis {a}, got one of 0 dimensions")
        raise ValueError(f"{what}: axis {a} is out of range for a tensor of {ndim} dimensions; "
                         f"expected {-ndim} <= axis < {ndim}")
    return as_given(a % ndim if ndim else 0, a)


def normalize_axes(what: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Several axes (None: all), from the front, ascending, each once.

    Raises: ValueError if an axis is out of range or named twice.

    >>> normalize_axes("sum", (-1, 0), 3)
    (0, 2)
    """
    if axis is None:
        return as_given(tuple(range(ndim)), ())
    if type(axis) is SpelledTuple:
        return axis
    if type(axis) is int and ndim:
        return as_given((int(normalize_axis(what, axis, ndim)),), (axis,))
    listed = [axis] if not isinstance(axis, (list, tuple)) and getattr(axis, "ndim", 0) == 0 else list(axis)
    out = [normalize_axis(what, a, ndim) for a in listed]
    if ndim == 0:
        return ()
    if len(set(out)) != len(out):
        raise ValueError(f"{what}: axis {tuple(listed)} names a dimension of the {ndim}-D tensor twice")
    return as_given(tuple(sorted(map(int, out))) or tuple(range(ndim)), tuple(map(int, listed)))


def reduced_shape(shape: tuple, axes: Sequence[int], keepdim: bool) -> tuple:
    """The shape after reducing `axes`."""
    return tuple([1 if i in axes else d for i, d in enumerate(shape) if keepdim or i not in axes])
