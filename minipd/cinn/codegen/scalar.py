"""Scalar operations of generated kernels that Python's operators do not say exactly as numpy means them.

`select`, `maximum` and `minimum` are LLVM instructions: Python's `x if c else y` and `max` become branches, which keep
a loop from being vectorized.
"""

from __future__ import annotations

import math as libm

import numpy as np
from llvmlite import ir

from minipd.cinn.codegen.inline import inline
from minipd.framework.numba_setup import numba

__all__: list[str] = []

types, intrinsic, cgutils = numba.types, numba.extending.intrinsic, numba.core.cgutils


@intrinsic
def select(typing_context, condition, x, y):
    """x where the condition holds, else y; both are evaluated."""
    if condition != types.boolean or x != y:
        return None

    def generate(context, builder, signature, arguments):
        condition, x, y = arguments
        return builder.select(condition, x, y)
    return x(condition, x, y), generate


@intrinsic
def hidden(typing_context, x):
    """x, a float, of which LLVM does not know that it is a constant."""
    if not isinstance(x, types.Float):
        return None

    def generate(context, builder, signature, arguments):
        bits = ir.IntType(x.bitwidth)
        same = builder.asm(ir.FunctionType(bits, [bits]), "", "=r,0", [builder.bitcast(arguments[0], bits)], False)
        return builder.bitcast(same, context.get_value_type(x))
    return x(x), generate


@intrinsic
def stream(typing_context, source, goal):
    """goal[:] = source, contiguous arrays that do not overlap, past the cache: by non-temporal stores, where lines of
    the goal are whole."""
    if source != goal or not isinstance(source, types.Array) or (source.ndim, source.layout) != (1, "C"):
        return None
    line = 64

    def generate(context, builder, signature, arguments):
        from_, to = (context.make_array(source)(context, builder, x) for x in arguments)
        element, size = context.get_data_type(source.dtype), context.get_constant(types.intp, 64).type
        lanes = line // context.get_abi_sizeof(element)
        vector = ir.VectorType(element, lanes).as_pointer()
        length = builder.extract_value(to.shape, 0)
        after = builder.urem(builder.ptrtoint(to.data, size), size(line))         # bytes since the last line's start
        head = builder.udiv(builder.urem(builder.sub(size(line), after), size(line)), size(line // lanes))
        head = builder.select(builder.icmp_unsigned("<", head, length), head, length)
        lines = builder.udiv(builder.sub(length, head), size(lanes))
        tail = builder.add(head, builder.mul(lines, size(lanes)))
        hint = builder.module.add_metadata([ir.IntType(32)(1)])

        def copy(index, kind=None, align=None):
            places = [builder.gep(array.data, [index]) for array in (from_, to)]
            if kind is not None:
                places = [builder.bitcast(place, kind) for place in places]
            value = builder.load(places[0])
            store = builder.store(value, places[1])
            if align is not None:
                store.align = align
                store.set_metadata("nontemporal", hint)
            return value
        with cgutils.for_range(builder, head) as loop:
            copy(loop.index)
        with cgutils.for_range(builder, lines) as loop:
            copy(builder.add(head, builder.mul(loop.index, size(lanes))), vector, line).align = line // lanes
        with cgutils.for_range(builder, builder.sub(length, tail)) as loop:
            copy(builder.add(tail, loop.index))
        return context.get_dummy_value()
    return types.void(source, goal), generate


# ---------------------------------------------------------------------------------------------- sums and products
def _folded(instruction):
    """An operation of a fold whose order is open.  All other arithmetic stays as it is written: LLVM would make y of
    (x + y) - x, and lose the infinities of x, and its NaNs."""
    def typed(typing_context, x, y):
        if x != y or not isinstance(x, types.Float):
            return None

        def generate(context, builder, signature, arguments):
            return getattr(builder, instruction)(*arguments, flags=("nsz", "reassoc", "contract"))
        return x(x, y), generate
    return intrinsic(typed)


plus = _folded("fadd")
times = _folded("fmul")


# ---------------------------------------------------------------------------------------------- maxima and minima
def _extremum(name, before):
    """before: how the one of two ints compares that is it."""
    def typed(typing_context, x, y):
        if x != y or not isinstance(x, types.Float | types.Integer):
            return None

        def generate(context, builder, signature, arguments):
            if isinstance(x, types.Integer):
                compare = builder.icmp_signed if x.signed else builder.icmp_unsigned
                return builder.select(compare(before, *arguments), *arguments)
            kind = context.get_value_type(x)
            function = builder.module.declare_intrinsic(name, [kind], ir.FunctionType(kind, [kind, kind]))
            # No nnan, no ninf.  These flags let LLVM reduce in vectors.
            return builder.call(function, arguments, fastmath=("nsz", "reassoc", "contract"))
        return x(x, y), generate
    return intrinsic(typed)


maximum = _extremum("llvm.maximum", ">")     # NaN if either is, as numpy's
minimum = _extremum("llvm.minimum", "<")


@intrinsic
def times_power_of_two(typing_context, x, k):
    """x 2^k for a float32 and an int32, rounded once; one instruction on processors with AVX-512, slow on others."""
    if (x, k) != (types.float32, types.int32):
        return None

    def generate(context, builder, signature, arguments):
        kinds = [context.get_value_type(t) for t in (x, k)]
        function = builder.module.declare_intrinsic("llvm.ldexp", kinds, ir.FunctionType(kinds[0], kinds))
        return builder.call(function, arguments)
    return x(x, k), generate


# ------------------------------------------------------------------------------------------------- bits of floats
def _bitcast(source, target, kind):
    def typed(typing_context, x):
        if x != source:
            return None
        return target(x), lambda context, builder, signature, arguments: builder.bitcast(arguments[0], kind)
    return intrinsic(typed)


int_bits = _bitcast(types.float32, types.int32, ir.IntType(32))         # the bits of a float32 as int32
from_bits = _bitcast(types.int32, types.float32, ir.FloatType())        # and back

F, I, U16 = np.float32, np.int32, np.uint16


@inline
def from_bfloat16(bits):
    """float32 of the bits of a bfloat16: its upper half."""
    return from_bits(I(I(bits) << I(16)))


@inline
def to_bfloat16(x):
    """The bits of the bfloat16 nearest to a float32, ties to even.  NaN keeps its sign and becomes quiet."""
    bits = int_bits(x)
    rounded = I(bits + I(0x7FFF) + I(I(bits >> I(16)) & I(1)))
    quiet = I(bits | I(0x400000))
    return U16(I(select(x == x, rounded, quiet) >> I(16)) & I(0xFFFF))


@inline
def from_float16(bits):
    """float32 of the bits of a float16.  A product moves the exponent, which takes care of denormals."""
    half = I(bits)
    magnitude = I(half & I(0x7FFF))
    value = from_bits(I(magnitude << I(13))) * F(2.0**112)
    special = from_bits(I(I(magnitude << I(13)) | I(0x7F800000)))               # inf and NaN
    value = select(magnitude >= I(0x7C00), special, value)
    return select(I(half & I(0x8000)) != I(0), -value, value)


@inline
def to_float16(x):
    """The bits of the float16 nearest to a float32, ties to even; inf from 65520 on."""
    bits = int_bits(x)
    sign = I(I(bits >> I(16)) & I(0x8000))
    magnitude = I(bits & I(0x7FFFFFFF))
    # Below 2^-14 the sum with 1/2 has the denormal's mantissa in its low bits, rounded by the addition.
    small = I(int_bits(from_bits(magnitude) + F(0.5)) - I(0x3F000000))
    normal = I(I(magnitude - I(112 << 23) + I(0xFFF) + I(I(magnitude >> I(13)) & I(1))) >> I(13))
    half = select(magnitude < I(113 << 23), small, normal)
    half = select(magnitude >= I(0x477FF000), I(0x7C00), half)
    half = select(magnitude > I(0x7F800000), I(I(0x7E00) | I(I(magnitude >> I(13)) & I(0x3FF))), half)
    return U16(half | sign)


@inline
def round_bfloat16(x):
    """The float32 nearest to x that a bfloat16 holds."""
    return from_bfloat16(to_bfloat16(x))


@inline
def round_float16(x):
    """The float32 nearest to x that a float16 holds."""
    return from_float16(to_float16(x))


@inline
def round_odd(x):
    """float64 to float32, the last bit set where the result is not exact: rounding once more gives what rounding the
    float64 at once would."""
    nearest = F(x)
    bits = int_bits(nearest)
    wide = np.float64(nearest)
    toward_zero = select(abs(wide) > abs(x), I(bits - I(1)), bits)
    return from_bits(select((wide == x) | (x != x), bits, I(toward_zero | I(1))))


# ----------------------------------------------------------------------------------------------------- powers
# By libm, here rather than in the kernel, whose float flags would let LLVM rewrite the call.
@inline
def power_float64(x, y):
    return libm.pow(x, y)


@inline
def power_float32(x, y):
    return F(libm.pow(np.float64(x), np.float64(y)))


# -------------------------------------------------------------------------------------- divisions that round down
def _int_divisions(kind):
    zero, one, minus_one = kind(0), kind(1), np.int64(-1).astype(kind)
    signed = kind is np.int64

    @inline
    def floordiv(x, y):
        negate = signed & (y == minus_one)          # the least int over -1 wraps around; the processor would trap
        quotient = kind(x // select((y == zero) | negate, one, y))
        return select(y == zero, zero, select(negate, kind(zero - x), quotient))

    @inline
    def mod(x, y):
        plain = (y == zero) | (signed & (y == minus_one))
        return select(plain & (y == zero), zero, kind(x % select(plain, one, y)))

    @inline
    def power(x, y):
        """x^y modulo 2^64, by squaring; y >= 0."""
        result, factor, left = one, x, y
        while left > zero:
            if left & one == one:
                result = kind(result * factor)
            factor = kind(factor * factor)
            left = kind(left >> one)
        return result
    return floordiv, mod, power


# Narrower ints are divided as int64.  A division by 0 gives 0, as numpy's.
int_floordiv, int_mod, int_power = _int_divisions(np.int64)
uint_floordiv, uint_mod, uint_power = _int_divisions(np.uint64)


def _float_divisions(kind):
    zero, one, half = kind(0), kind(1), kind(0.5)

    @inline
    def mod(x, y):
        """The remainder with the sign of y; NaN for y = 0."""
        rest = np.fmod(x, y)
        return rest + y if (rest != zero) & ((y < zero) != (rest < zero)) else rest

    @inline
    def floordiv(x, y):
        """The integer (x - mod(x, y)) / y, also where y is inf; x / y for y = 0."""
        if y == zero:
            return x / y
        rest = np.fmod(x, y)
        quotient = (x - rest) / y
        if (rest != zero) & ((y < zero) != (rest < zero)):
            quotient = quotient - one
        whole = np.floor(quotient)
        return whole + one if quotient - whole > half else whole
    return floordiv, mod


floordiv_float32, mod_float32 = _float_divisions(np.float32)
floordiv_float64, mod_float64 = _float_divisions(np.float64)
