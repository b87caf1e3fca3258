"""Moving data: reshape, transpose, concat, split, and reading and writing strided parts.

Strided parts are normalised before dispatch: along axis a, element i is `range(start, end, stride)[i]`; `end` may be -1
with a negative stride, and means "past the front".  So every size follows from `range`, and no stride needs its own
case, in the gradient either (the gradient of a read is a write into zeros).
"""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import exact_div, is_symbolic, prod, require_at_least, same
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import as_operand, reduce_to
from minipd.ops.creation import Full, full_like, shape_tuple, zeros_like
from minipd.ops.math import promoted
from minipd.ops.shapes import agree, normalize_axes, normalize_axis

__all__ = ["concat", "flatten", "reshape", "slice", "split", "squeeze", "strided_slice", "stack", "t", "transpose",
           "tril", "triu", "unsqueeze"]


# ---------------------------------------------------------------------------------------------------- reshape
@op("reshape", Trait.VIEW, Trait.EXACT)
class Reshape:
    """The same elements in row-major order under another shape."""

    mutable = ("shape",)

    def infer_meta(x, *, shape):
        if not agree(prod(shape), prod(x.shape), "reshape: the number of elements"):
            raise ValueError(f"reshape: expected a shape of {prod(x.shape)} elements for {describe(x)}, got "
                             f"{list(shape)} of {prod(shape)}")
        return Meta(shape, x.dtype)

    def kernel(xp, x, *, shape):
        return x.reshape(shape)

    def put_back(base, view, *, shape):
        return reshape(view, base.payload.shape)

    def vjp_x(g, x: Meta):
        return reshape(g, x.shape)


@op("squeeze", Trait.VIEW, Trait.EXACT)
class Squeeze:
    """Without the dimensions `axis`, each of size 1."""

    mutable = ("axis",)

    def infer_meta(x, *, axis):
        return Meta(tuple(d for i, d in enumerate(x.shape) if i not in axis), x.dtype)

    def kernel(xp, x, *, axis):
        return x.reshape(tuple(d for i, d in enumerate(x.shape) if i not in axis))

    def put_back(base, view, *, axis):
        return Unsqueeze(view, axis=axis)

    def vjp_x(g, axis):
        return Unsqueeze(g, axis=axis)


@op("unsqueeze", Trait.VIEW, Trait.EXACT)
class Unsqueeze:
    """With new dimensions of size 1, at the positions `axis` of the result."""

    mutable = ("axis",)

    def infer_meta(x, *, axis):
        return Meta(_with_ones(x.shape, axis), x.dtype)

    def kernel(xp, x, *, axis):
        return x.reshape(_with_ones(x.shape, axis))

    def put_back(base, view, *, axis):
        return Squeeze(view, axis=axis)

    def vjp_x(g, axis):
        return Squeeze(g, axis=axis)


def _with_ones(shape: tuple, axis: tuple) -> tuple:
    dims = iter(shape)
    return tuple(1 if i in axis else next(dims) for i in range(len(shape) + len(axis)))


@op("transpose", Trait.VIEW, Trait.EXACT)
class Transpose:
    """Dimension i of the result is dimension perm[i] of x."""

    def infer_meta(x, *, perm):
        return Meta(tuple(x.shape[p] for p in perm), x.dtype)

    def kernel(xp, x, *, perm):
        return x.transpose(perm)

    def put_back(base, view, *, perm):
        return Transpose(view, perm=_inverse(perm))

    def vjp_x(g, perm):
        return Transpose(g, perm=_inverse(perm))


def _inverse(perm: tuple) -> tuple:
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


# -------------------------------------------------------------------------------------------- strided parts
def part_size(start: Any, end: Any, stride: int) -> Any:
    """How many elements `range(start, end, stride)` has; symbolic bounds with stride 1."""
    if is_symbolic(start) or is_symbolic(end):
        return exact_div(end - start, stride, "a strided part of a symbolic dimension")
    return len(range(start, end, stride))


def _part_shape(shape: tuple, axes: tuple, starts: tuple, ends: tuple, strides: tuple) -> tuple:
    out = list(shape)
    for a, b, e, s in zip(axes, starts, ends, strides, strict=True):
        out[a] = part_size(b, e, s)
    return tuple(out)


def _part_index(ndim: int, axes: tuple, starts: tuple, ends: tuple, strides: tuple) -> tuple:
    index = [_python_slice(None, None, None)] * ndim
    for a, b, e, s in zip(axes, starts, ends, strides, strict=True):
        index[a] = _python_slice(b, None if s < 0 and e < 0 else e, s)
    return tuple(index)


_python_slice = slice


@op("slice", Trait.VIEW, Trait.EXACT)
class Slice:
    """x[starts[i] : ends[i]] along axes[i]."""

    mutable = ("starts", "ends")

    def infer_meta(x, *, axes, starts, ends):
        return Meta(_part_shape(x.shape, axes, starts, ends, (1,) * len(axes)), x.dtype)

    def kernel(xp, x, *, axes, starts, ends):
        return x[_part_index(x.ndim, axes, starts, ends, (1,) * len(axes))]

    def put_back(base, view, *, axes, starts, ends):
        return SetValue(base, view, axes=axes, starts=starts, ends=ends, strides=(1,) * len(axes))

    def vjp_x(g, x: Meta, axes, starts, ends):
        return SetValue(_zeros_as(g, x), g, axes=axes, starts=starts, ends=ends, strides=(1,) * len(axes))


@op("strided_slice", Trait.VIEW, Trait.EXACT)
class StridedSlice:
    """Elements starts[i], starts[i] + strides[i], ... before ends[i], along axes[i]."""

    mutable = ("starts", "ends", "strides")

    def infer_meta(x, *, axes, starts, ends, strides):
        return Meta(_part_shape(x.shape, axes, starts, ends, strides), x.dtype)

    def kernel(xp, x, *, axes, starts, ends, strides):
        return x[_part_index(x.ndim, axes, starts, ends, strides)]

    def put_back(base, view, *, axes, starts, ends, strides):
        return SetValue(base, view, axes=axes, starts=starts, ends=ends, strides=strides)

    def vjp_x(g, x: Meta, axes, starts, ends, strides):
        return SetValue(_zeros_as(g, x), g, axes=axes, starts=starts, ends=ends, strides=strides)


@op("set_value", Trait.EXACT, Trait.INPLACE)
class SetValue:
    """x with the part named by axes, starts, ends and strides replaced by `value`, which broadcasts to that part."""

    inplace = {0: 0}
    mutable = ("starts", "ends", "strides")

    def infer_meta(x, value, *, axes, starts, ends, strides):
        part = _part_shape(x.shape, axes, starts, ends, strides)
        shape = value.shape if hasattr(value, "shape") else ()
        lead = len(shape) - len(part)
        if any(not same(d, 1) for d in shape[:max(lead, 0)]) or any(
                not same(v, 1) and not agree(v, p, "set_value: the sizes of value and part")
                for v, p in zip(reversed(shape), reversed(part), strict=False)):
            raise ValueError(f"set_value: expected a value that broadcasts to the part written, of shape {list(part)}, "
                             f"got shape {list(shape)}")
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, value, *, axes, starts, ends, strides):
        out = xp.array(x)
        out[_part_index(x.ndim, axes, starts, ends, strides)] = value
        return out

    def kernel_out(xp, out, x, value, *, axes, starts, ends, strides):
        if out is not x:
            out[...] = x
        out[_part_index(x.ndim, axes, starts, ends, strides)] = value

    def vjp_x(g, axes, starts, ends, strides):
        return SetValue(g, 0.0, axes=axes, starts=starts, ends=ends, strides=strides)

    def vjp_value(g, value: Meta, axes, starts, ends, strides):
        part = StridedSlice(g, axes=axes, starts=starts, ends=ends, strides=strides)
        lead = len(value.shape) - part.ndim
        if lead > 0:                                     # a value of shape [1, ..., part]
            part = Unsqueeze(part, axis=tuple(range(lead)))
        return reduce_to(part, value)


def _zeros_as(g: Tensor, like: Any) -> Tensor:
    return full_like(as_operand(like), 0.0, g.dtype)


# ------------------------------------------------------------------------------------------- concat and split
@op("concat", Trait.EXACT)
class Concat:
    """The tensors one after the other along `axis`."""

    mutable = ("axis",)

    def infer_meta(*xs, axis):
        first = xs[0]
        if not first.shape:
            raise ValueError("concat: expected tensors of at least 1 dimension, got 0-D ones; use stack")
        for x in xs[1:]:
            if len(x.shape) != len(first.shape) or any(
                    i != axis and not agree(a, b, f"concat: dimension {i}")
                    for i, (a, b) in enumerate(zip(x.shape, first.shape, strict=True))):
                raise ValueError(f"concat: expected shapes that agree but for axis {axis}, got "
                                 f"{' and '.join(map(describe, xs))}")
        total = first.shape[axis]
        for x in xs[1:]:
            total = total + x.shape[axis]
        return Meta((*first.shape[:axis], total, *first.shape[axis + 1:]), first.dtype)

    def kernel(xp, *xs, axis):
        return xp.concatenate(xs, axis)

    def kernel_out(xp, out, *xs, axis):
        xp.concatenate(xs, axis, out=out)

    def vjp(g, xs: Meta, axis):
        sections = tuple(x.shape[axis] for x in xs)  # type: ignore[attr-defined]  # variadic: a Meta for each
        return list(Split(g, sections=sections, axis=axis))


@op("split", Trait.VIEW, Trait.MULTI, Trait.EXACT)
class Split:
    """Consecutive parts along `axis`, of the sizes `sections`."""

    mutable = ("sections", "axis")

    def infer_meta(x, *, sections, axis):
        return tuple(Meta((*x.shape[:axis], n, *x.shape[axis + 1:]), x.dtype) for n in sections)

    def kernel(xp, x, *, sections, axis):
        ends = [sum_(sections[:i]) for i in range(1, len(sections))]
        return tuple(xp.split(x, ends, axis))

    def put_back(base, view, *, sections, axis):
        raise RuntimeError("in-place on a result of split while tracing: write into a slice of the tensor instead")

    def vjp_x(gs, x: Meta, sections, axis):
        known = next(g for g in gs if g is not None)
        parts = []
        for g, n in zip(gs, sections, strict=True):
            if g is None:
                shape = (*x.shape[:axis], n, *x.shape[axis + 1:])
                g = zeros_like(known) if known.payload.shape == shape else Full(
                    shape=shape, value=0, dtype=known.payload.dtype)
            parts.append(g)
        return Concat(*parts, axis=axis)


sum_ = sum


def _require_matrix(what: str, x: Any) -> None:
    if len(x.shape) < 2:
        raise ValueError(f"{what}: expected a tensor of at least 2 dimensions, got {describe(x)}")


@op("tril", Trait.EXACT)
class Tril:
    """The lower triangle of the last two dimensions: 0 above the given diagonal."""

    def infer_meta(x, *, diagonal=0):
        _require_matrix("tril", x)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, *, diagonal=0):
        return xp.tril(x, diagonal)

    def kernel_out(xp, out, x, *, diagonal=0):
        out[...] = xp.tril(x, diagonal)

    def vjp_x(g, diagonal):
        return Tril(g, diagonal=diagonal)


@op("triu", Trait.EXACT)
class Triu:
    """The upper triangle of the last two dimensions: 0 below the given diagonal."""

    def infer_meta(x, *, diagonal=0):
        _require_matrix("triu", x)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, *, diagonal=0):
        return xp.triu(x, diagonal)

    def kernel_out(xp, out, x, *, diagonal=0):
        out[...] = xp.triu(x, diagonal)

    def vjp_x(g, diagonal):
        return Triu(g, diagonal=diagonal)


# ------------------------------------------------------------------------------------------- public functions
def reshape(x: Tensor, shape: Any, name: str | None = None) -> Tensor:
    """The same elements under another shape.  -1 (once) is what is left over; 0 keeps the dimension as it is.

    Raises: ValueError if the numbers of elements differ.

    >>> from minipd.ops.creation import arange
    >>> reshape(arange(6), [2, -1]).shape
    paddle.Size([2, 3])
    """
    own = x.payload.shape
    given = shape.tolist() if isinstance(shape, Tensor) else shape
    target = list(given) if isinstance(given, (list, tuple)) else [given]
    for i, d in enumerate(target):
        if same(d, 0) and i < len(own) and prod(own) != 0:
            target[i] = own[i]
    left_over = [i for i, d in enumerate(target) if same(d, -1)]
    if len(left_over) > 1:
        raise ValueError(f"reshape: expected at most one -1, got {target}")
    if left_over:
        rest = prod(d for d in target if not same(d, -1))
        total = prod(own)
        if not is_symbolic(rest) and not is_symbolic(total) and (rest == 0 or total % rest):
            raise ValueError(f"reshape: {total} elements of shape {list(own)} do not divide into {target}")
        target[left_over[0]] = exact_div(total, rest, f"reshape of {list(own)} to {target}")
    return Reshape(x, shape=shape_tuple("reshape", target))


def flatten(x: Tensor, start_axis: int = 0, stop_axis: int = -1, name: str | None = None) -> Tensor:
    """Dimensions start_axis to stop_axis, inclusive, as one."""
    if x.ndim == 0:
        return x.reshape([1])
    a, b = normalize_axis("flatten", start_axis, x.ndim), normalize_axis("flatten", stop_axis, x.ndim)
    if a > b:
        raise ValueError(f"flatten: expected start_axis before stop_axis, got {start_axis} and {stop_axis} for "
                         f"{describe(x.payload)}")
    s = x.payload.shape
    return Reshape(x, shape=(*s[:a], prod(s[a:b + 1]), *s[b + 1:]))


def squeeze(x: Tensor, axis: Any = None, name: str | None = None) -> Tensor:
    """Without dimensions of size 1 (all of them, or those among `axis` that have size 1)."""
    axes = normalize_axes("squeeze", axis, x.ndim)
    ones = tuple(a for a in axes if same(x.payload.shape[a], 1))
    return Squeeze(x, axis=ones) if ones else x


def unsqueeze(x: Tensor, axis: Any, name: str | None = None) -> Tensor:
    """With new dimensions of size 1 at the positions `axis`, inserted one after the other.

    >>> from minipd.ops.creation import ones
    >>> unsqueeze(ones([2, 3]), [0, -1]).shape
    paddle.Size([1, 2, 3, 1])
    """
    listed = axis.tolist() if isinstance(axis, Tensor) else axis
    placed: list[int] = []
    for n, a in enumerate(listed if isinstance(listed, (list, tuple)) else [listed]):
        at = normalize_axis("unsqueeze", a, x.ndim + n + 1)
        placed = [p + (p >= at) for p in placed] + [at]
    return Unsqueeze(x, axis=tuple(sorted(placed)))


def transpose(x: Tensor, perm: Any, name: str | None = None) -> Tensor:
    """Dimensions in the order `perm`; negative ones count from the end.

    Raises: ValueError if `perm` is no permutation.

    >>> from minipd.ops.creation import ones
    >>> transpose(ones([2, 3, 4]), [-1, 0, 1]).shape
    paddle.Size([4, 2, 3])
    """
    axes = tuple(normalize_axis("transpose", p, x.ndim) for p in perm)
    if sorted(axes) != list(range(x.ndim)):
        raise ValueError(f"transpose: expected a permutation of {x.ndim} dimensions, got {list(perm)}")
    return Transpose(x, perm=axes)


def t(input: Tensor, name: str | None = None) -> Tensor:
    """The transpose of a matrix; tensors of fewer dimensions as they are."""
    if input.ndim > 2:
        raise ValueError(f"t: expected at most 2 dimensions, got {describe(input)}; use transpose")
    return Transpose(input, perm=(1, 0)) if input.ndim == 2 else input


def concat(x: Any, axis: Any = 0, name: str | None = None) -> Tensor:
    """The tensors of the list x, one after the other along `axis`."""
    xs = list(x)
    if not xs:
        raise ValueError("concat: expected at least one tensor, got an empty list")
    axis = axis.item() if isinstance(axis, Tensor) else axis
    for i in range(1, len(xs)):
        if xs[i].payload.dtype != xs[0].payload.dtype:
            xs[0], xs[i] = promoted("concat", xs[0], xs[i])
    xs = [promoted("concat", xs[0], v)[1] for v in xs]
    return Concat(*xs, axis=normalize_axis("concat", axis, xs[0].ndim))


def stack(x: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """The tensors of the list x, along a new dimension."""
    xs = list(x)
    if not xs:
        raise ValueError("stack: expected at least one tensor, got an empty list")
    at = normalize_axis("stack", axis, xs[0].ndim + 1)
    return concat([Unsqueeze(v, axis=(at,)) for v in xs], at)


def split(x: Tensor, num_or_sections: Any, axis: Any = 0, name: str | None = None) -> list[Tensor]:
    """x in parts along `axis`: into n equal ones, or of the given sizes (-1, once: what is left over).

    Raises: ValueError if the sizes do not add up.

    >>> from minipd.ops.creation import arange
    >>> [p.tolist() for p in split(arange(5), [2, -1])]
    [[0, 1], [2, 3, 4]]
    """
    axis = normalize_axis("split", axis.item() if isinstance(axis, Tensor) else axis, x.ndim)
    n = x.payload.shape[axis]
    if isinstance(num_or_sections, int):
        if not is_symbolic(n) and n % num_or_sections:
            raise ValueError(f"split: axis {axis} of size {n} does not divide into {num_or_sections} equal parts; "
                             "give the sizes in a list")
        sections = (exact_div(n, num_or_sections, "split"),) * num_or_sections
    else:
        given = list(num_or_sections)
        rest = n - sum_(d for d in given if not same(d, -1))
        sections = tuple(rest if same(d, -1) else d for d in given)
        if not same(sum_(sections), n) or not is_symbolic(rest) and rest < 0:
            raise ValueError(f"split: sizes {given} do not add up to {n}, the size of axis {axis}")
    return list(Split(x, sections=sections, axis=axis))


def slice(input: Tensor, axes: Any, starts: Any, ends: Any) -> Tensor:
    """input[starts[i] : ends[i]] along axes[i], by Python's rules for slices."""
    return strided_slice(input, axes, starts, ends, [1] * len(axes))


def strided_slice(x: Tensor, axes: Any, starts: Any, ends: Any, strides: Any, name: str | None = None) -> Tensor:
    """x[starts[i] : ends[i] : strides[i]] along axes[i], by Python's rules for slices.

    >>> from minipd.ops.creation import arange
    >>> strided_slice(arange(5), [0], [4], [0], [-3]).tolist()
    [4, 1]
    """
    where_ = [normalize_axis("slice", a, x.ndim) for a in axes]
    if len(set(where_)) != len(where_):
        raise ValueError(f"slice: axes {list(axes)} name a dimension of the {x.ndim}-D tensor twice")
    parts = [normalized_part(_python_slice(_int(b), _int(e), _int(s)), x.payload.shape[a])
             for a, b, e, s in zip(where_, starts, ends, strides, strict=True)]
    return take_part(x, where_, parts)


def _int(v: Any) -> Any:
    return v.item() if isinstance(v, Tensor) else v


def normalized_part(s: Any, n: Any) -> tuple[Any, Any, int]:
    """A Python slice of a dimension of size n as (start, end, stride) with start and end inside.

    >>> from builtins import slice
    >>> normalized_part(slice(4, None, -3), 5), normalized_part(slice(1, 99), 5), normalized_part(slice(3, 1), 5)
    ((4, -1, -3), (1, 5, 1), (3, 3, 1))
    """
    if is_symbolic(n) or is_symbolic(s.start) or is_symbolic(s.stop):
        if s.step not in (None, 1):
            raise ValueError(f"slice with stride {s.step} of a symbolic dimension {n}: its size would depend on values")
        start, end = (_from_front(v, n, default) for v, default in ((s.start, 0), (s.stop, n)))
        what = f"slice {start}:{end} of a dimension of size {n}"    # Python would clip, and the size depend on values
        require_at_least(start, 0, what)
        require_at_least(end, start, what)
        require_at_least(n, end, what)
        return start, end, 1
    start, end, stride = s.indices(n)
    return start, start if not range(start, end, stride) else end, stride


def _from_front(v: Any, n: Any, default: Any) -> Any:
    if v is None:
        return default
    return v + n if not is_symbolic(v) and v < 0 else v


def take_part(x: Tensor, axes: list, parts: list) -> Tensor:
    """The strided part of x; x itself if that is everything."""
    kept = [(a, p) for a, p in zip(axes, parts, strict=True) if p[2] != 1 or not (
        same(p[0], 0) and same(p[1], x.payload.shape[a]))]
    if not kept:
        return x
    attrs = {"axes": tuple(a for a, _ in kept), "starts": tuple(p[0] for _, p in kept),
             "ends": tuple(p[1] for _, p in kept)}
    if all(p[2] == 1 for _, p in kept):
        return Slice(x, **attrs)
    return StridedSlice(x, **attrs, strides=tuple(p[2] for _, p in kept))


def tril(x: Tensor, diagonal: int = 0, name: str | None = None) -> Tensor:
    """0 above the given diagonal of the last two dimensions."""
    _require_matrix("tril", x.payload)
    return Tril(x, diagonal=diagonal)


def triu(x: Tensor, diagonal: int = 0, name: str | None = None) -> Tensor:
    """0 below the given diagonal of the last two dimensions."""
    _require_matrix("triu", x.payload)
    return Triu(x, diagonal=diagonal)
