# Two constants stay what they are.
from minipd.cinn.ir.ast import INT64, Const
from minipd.cinn.ir.simplify import _index_arithmetic, _is


def _binary(e):
    x, y = e.x, e.y
    if e.op in ("and", "or"):
        for known, other in ((x, y), (y, x)):
            if isinstance(known, Const):
                return other if bool(known.value) == (e.op == "and") else known
    one, zero = _is(y, 1), _is(y, 0)
    match e.op:
        case "add" if zero:
            return x
        case "add" if _is(x, 0):
            return y
        case "sub" if zero:
            return x
        case "mul" if one:
            return x
        case "mul" if _is(x, 1):
            return y
        case "div" if one:
            return x
    return _index_arithmetic(e) if e.dtype == INT64 else e
