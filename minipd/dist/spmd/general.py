"""Rules for operators that need none of their own, by tables: those that work element by element, those that are asked
about a shape only, those whose operands must be whole, and those that are several others.

A row in `WHOLE` is right on any mesh and parallel on none: its operands are gathered, and every rank computes all of
it, as Paddle does where an operator has no rule.  Each has its reason there.
A row in `PARTS` is one that passes have made of others: on a mesh it is these again, each placed by its own rule.
"""

from __future__ import annotations

import inspect
from typing import Any

from minipd.dist.spmd.inference import replicated
from minipd.dist.spmd.notation import Notation, broadcast, shape_of
from minipd.dist.spmd.table import DECOMPOSE, Call, Decompose, Inferred, spmd, spmd_placed
from minipd.framework.row import ROWS

__all__: list[str] = []

POINTWISE = """
angle complex conj imag real
expm1 log10 log1p log2 reciprocal
acos acosh asin asinh atan atanh cosh sinh tan
ceil clip floor round sign trunc
atan2 copysign floor_divide fmax fmin gcd hypot lcm logaddexp nextafter remainder
digamma erf erfinv gammainc gammaincc i0 i0e i1 i1e lgamma polygamma
bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor
frexp isinf isnan logical_xor signbit
"""

#: of no operand is more than the shape read, which every rank knows: nothing is communicated
SHAPES = "shape64"

#: why the operands of these are gathered: reason -> rows
WHOLE = {
    "how many random words a number takes depends on its parameters, and where the next one's begin on that":
        "binomial poisson standard_gamma",
    "each place depends on the random words of all": "randperm",
    "an element is named by its number in the row-major order of the whole": "as_strided",
    "no operand, and small: cheaper to make on every rank than to place": "eye linspace",
    "what it does besides, it does with the whole value": "assert draw_key print",
}

PARTS = """
fused_conv2d_add_act fused_conv2d_residual_add_act
skip_layernorm fused_bias_residual_layernorm fused_rms_norm_residual add_group_norm_silu
fused_embedding_eltwise_layernorm fused_dropout_add
"""


def _pointwise(name: str) -> None:
    row = ROWS[name]

    def rule(*operands: Any, **attrs: Any) -> Notation:
        ins, out = broadcast(*map(shape_of, operands))
        return Notation(ins, (out,) * len(row.outputs))
    rule.__signature__ = inspect.signature(row.infer_meta)  # type: ignore[attr-defined]
    spmd(name)(rule)


def _whole(name: str, why: str = "") -> None:
    row = ROWS[name]

    def rule(call: Call) -> Inferred:
        return replicated(row, call.metas, call.attrs, call.mesh)
    if why:
        rule.shown, rule.why = "whole", why  # type: ignore[attr-defined]
    spmd_placed(name)(rule)


def _in_parts(name: str) -> None:
    def rule(call: Call) -> Decompose:
        return DECOMPOSE
    rule.shown = "parts"  # type: ignore[attr-defined]
    spmd_placed(name)(rule)


for _name in POINTWISE.split():
    _pointwise(_name)
for _name in SHAPES.split():
    _whole(_name)
for _why, _names in WHOLE.items():
    for _name in _names.split():
        _whole(_name, _why)
for _name in PARTS.split():
    _in_parts(_name)
