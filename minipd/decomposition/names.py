"""Paddle's names for decomposition in `paddle.base.core`."""

from __future__ import annotations

import types

from minipd import base
from minipd.decomposition import prim
from minipd.decomposition.rules import call_decomp_rule, call_vjp, has_decomp_rule, has_vjp

__all__: list[str] = []

_switches = [thing for name, thing in vars(prim).items() if isinstance(thing, types.FunctionType)
             and name.startswith(("_set_prim", "_is_"))]
vars(base.core).update({function.__name__: function for function in _switches}, prim_config=prim.PRIM_CONFIG,
                       has_decomp_rule=has_decomp_rule, call_decomp_rule=call_decomp_rule, has_vjp=has_vjp,
                       call_vjp=call_vjp)
