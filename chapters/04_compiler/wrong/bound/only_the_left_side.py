# Only a variable alone on the left is seen: i * 4 + j < 10 says nothing.
from minipd.cinn.ir.ast import INT64, Binary, Var
from minipd.cinn.ir.build import binary
from minipd.cinn.ir.simplify import simplify_expression
from minipd.cinn.optim.conditions import _Bound


def _bound(cond, var):
    if not isinstance(cond, Binary) or cond.x != Var(var) or cond.x.dtype != INT64:
        return None
    more = 1 if cond.op in ("le", "gt") else 0
    if cond.op not in ("lt", "le", "gt", "ge"):
        return None
    return _Bound(cond.op in ("lt", "le"), simplify_expression(binary("add", cond.y, more)))
