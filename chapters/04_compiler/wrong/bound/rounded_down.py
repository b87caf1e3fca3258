# 4 j < 10 is taken for j < 10 // 4: the quotient is rounded down.
from minipd.cinn.ir.ast import INT64, Binary
from minipd.cinn.ir.build import binary
from minipd.cinn.ir.linear import coefficient, constant_of, difference, from_polynomial, polynomial
from minipd.cinn.ir.simplify import simplify_expression
from minipd.cinn.optim.conditions import _Bound


def _bound(cond, var):
    if not isinstance(cond, Binary) or cond.op not in ("lt", "le", "gt", "ge") or cond.x.dtype != INT64:
        return None
    x, y = (cond.x, cond.y) if cond.op in ("lt", "le") else (cond.y, cond.x)
    below = difference(polynomial(x), polynomial(y))
    if cond.op in ("le", "ge"):
        below = difference(below, {(): 1})
    found = coefficient(below, var)
    c = None if found is None else constant_of(found[0])
    if not c:
        return None
    rest = found[1]
    if c > 0:
        return _Bound(True, simplify_expression(binary("floordiv", from_polynomial(difference({}, rest)), c)))
    bottom = difference(rest, {(): c})
    return _Bound(False, simplify_expression(binary("floordiv", from_polynomial(bottom), -c)))
