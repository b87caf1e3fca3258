"""What a computation costs, in additions: enough to tell cheap from dear."""

from __future__ import annotations

import math

from minipd.cinn.compute.scalar import Scalar
from minipd.cinn.compute.table import Elementwise, compute_dtype, compute_of
from minipd.cinn.ir.ast import Binary, Call, Expr, Unary, Var
from minipd.cinn.ir.walk import walk
from minipd.ir.operation import Operation
from minipd.ir.schema import op_attrs, tensor_operands

__all__ = ["COST", "cost", "cost_of_op"]

#: what an operator costs; others cost 1
COST = {"exp": 10, "log": 12, "tanh": 15, "erf": 25, "erfc": 22, "sin": 12, "cos": 12, "pow": 25, "div": 3, "sqrt": 3,
        "rsqrt": 4, "exp2": 10, "expm1": 12, "log1p": 14, "log2": 12, "log10": 12, "tan": 15, "sinh": 15, "cosh": 15,
        "asin": 20, "acos": 20, "atan": 20, "atan2": 25}


def cost(e: Expr) -> int:
    """What an expression costs; index arithmetic is free.

    >>> import numpy as np
    >>> from minipd.cinn.ir.build import unary
    >>> cost(unary("exp", Var("x", np.dtype("float32"))))
    10
    """
    return sum(COST.get(x.name if isinstance(x, Call) else x.op, 1) for x in walk(e)
               if isinstance(x, Unary | Binary | Call) and x.dtype.kind == "f")


def cost_of_op(op: Operation) -> float:
    """What one element of an element-wise operator's results costs; infinite for others."""
    compute = None if op.row is None else compute_of(op.row)
    if not isinstance(compute, Elementwise):
        return math.inf
    elements = [Scalar(Var(f"x{i}", compute_dtype(v.dtype))) for i, v in enumerate(tensor_operands(op))]
    try:
        found = compute.formula(*elements, **op_attrs(op))
    except TypeError:
        return math.inf
    return sum(cost(s.expr) for s in (found if isinstance(found, tuple) else (found,)))
