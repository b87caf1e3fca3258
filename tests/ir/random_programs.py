"""Random well-formed programs, for tests of everything that reads programs.

Operations come from the operator table, with shapes that fit; values are picked from all that are visible; `pd_op.if`
regions nest; attributes of every kind, with nasty strings and floats, are hung on operations as extra facts.
"""

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from minipd import ops  # noqa: F401  (fills the operator table)
from minipd.framework.dim import symbol
from minipd.framework.row import ROWS
from minipd.ir import Program, attribute
from minipd.ir.builder import Builder
from minipd.ir.types import TensorType

DTYPES = [np.dtype(t) for t in ("float32", "float64", "float16", ml_dtypes.bfloat16, "int64", "int32")]
FLOATS = DTYPES[:4]
DIMS = st.sampled_from([0, 1, 2, 3, symbol("S0"), symbol("S1"), 2 * symbol("S0") + 1, (symbol("S0") + 1) / 2])

text = st.text(max_size=8) | st.sampled_from(['"', "\\", "\n", "a\tb", "{x:1}", "\u2028", "\ud800", "%0", "}"])
floats = st.floats() | st.sampled_from([-0.0, 5e-324, 1e-06, float("nan"), float("inf"), float("-inf"), 0.1])
numbers = st.integers(-2**63, 2**63 - 1)
scalars = st.one_of(
    st.booleans(), numbers, floats, text, st.sampled_from(DTYPES), DIMS,
    st.builds(np.float32, st.floats(width=32)), st.builds(np.int32, st.integers(-2**31, 2**31 - 1)))
nested = st.recursive(scalars, lambda s: st.lists(s, max_size=3), max_leaves=5)
values = scalars | st.lists(numbers, max_size=3) | nested
#: facts that any operation may carry
facts = st.dictionaries(st.sampled_from(["struct_name", "comp_op_name", "op_callstack", "op_role", "place"]),
                        values.map(attribute), max_size=2)

UNARY = ("exp", "tanh", "abs", "square", "assign")
BINARY = ("add", "multiply", "subtract", "maximum")


@st.composite
def programs(draw, symbolic=True, max_ops=12):
    """A well-formed program."""
    program = Program()
    if symbolic and draw(st.booleans()):
        program.constraints.record("equal", symbol("S0"), 5, draw(text))
        program.constraints.record("divisible", symbol("S1") + 1, 2, "halves")
    build = Builder(program.global_block())
    dims = DIMS if symbolic else st.integers(0, 3)
    seen = []
    for i in range(draw(st.integers(1, 3))):
        shape, dtype = tuple(draw(st.lists(dims, max_size=3))), draw(st.sampled_from(DTYPES))
        if draw(st.booleans()):
            seen.append(build.data(f"x{i}", shape, dtype, draw(st.booleans())))
        else:
            seen.append(build.parameter(f"w{i}{draw(text)}", shape, dtype))
    _operations(draw, build, seen, draw(st.integers(0, max_ops)), depth=0)
    if draw(st.booleans()):
        build.set_parameter("w", draw(st.sampled_from(seen)))
    return program


def _operations(draw, build, seen, count, depth):
    """`count` random operations at the builder's place; `seen` grows with their results."""
    for _ in range(count):
        kind = draw(st.sampled_from(["unary", "binary", "sum", "scale", "concat", "split", "full", "if"]))
        x = draw(st.sampled_from(seen))
        match kind:
            case "unary" if x.dtype in FLOATS:
                new = build.call(ROWS[draw(st.sampled_from(UNARY))], (x,), {}, draw(facts))
            case "binary":
                same = [v for v in seen if v.dtype == x.dtype and v.shape == x.shape]
                new = build.call(ROWS[draw(st.sampled_from(BINARY))], (x, draw(st.sampled_from(same))), {}, draw(facts))
            case "sum":
                axis = tuple(i for i in range(x.ndim) if draw(st.booleans()))
                new = build.call(ROWS["sum"], (x,), {"axis": axis, "keepdim": draw(st.booleans())})
            case "scale" if x.dtype in FLOATS:
                attrs = {"scale": draw(floats), "bias": draw(floats), "bias_after_scale": draw(st.booleans())}
                new = build.call(ROWS["scale"], (x,), attrs)
            case "concat" if x.ndim:
                axis = draw(st.integers(0, x.ndim - 1))
                new = build.call(ROWS["concat"], (x,) * draw(st.integers(1, 3)), {"axis": axis})
            case "split" if x.ndim and isinstance(x.shape[0], int) and x.shape[0] > 1:
                new = build.call(ROWS["split"], (x,), {"sections": (1, x.shape[0] - 1), "axis": 0})
            case "if" if depth < 2:
                new = _if(draw, build, seen, x, depth)
            case _:
                new = [build.full((2,), draw(numbers), "int64")]
        seen.extend(new)


def _if(draw, build, seen, x, depth):
    """An `if` that yields some of what its regions see, or nothing."""
    condition = build.full((), draw(st.booleans()), "bool")
    yielded = [x] if draw(st.booleans()) else []
    op = build.build("pd_op.if", [condition], {"stop_gradient": [True] * len(yielded)} if yielded else {},
                     [v.type() for v in yielded], num_regions=2)
    for region in op.regions:
        inside = Builder(region.add_block())
        visible = list(seen)
        _operations(draw, inside, visible, draw(st.integers(0, 3)), depth + 1)
        outs = [draw(st.sampled_from([v for v in visible if isinstance(v.type(), TensorType) and v.type() == y.type()]))
                for y in yielded]
        inside.build("cf.yield", outs)
    return op.results()
