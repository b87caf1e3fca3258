"""Random well-formed programs, for tests of everything that reads programs.

Operations come from the operator table, with shapes that fit; values are picked from all that are visible, those around
a region among them; `pd_op.if` and `pd_op.while` nest, and loops end; values travel in vectors; attributes of every
kind, with nasty strings and floats, are hung on operations as extra facts.  `strange` programs also have operations
that no dialect knows.
"""

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from minipd import ops  # noqa: F401  (fills the operator table)
from minipd.framework.dim import maximum, symbol
from minipd.framework.dim_atoms import broadcast
from minipd.framework.row import ROWS
from minipd.ir import Program, attribute
from minipd.ir.builder import Builder

DTYPES = [np.dtype(t) for t in ("float32", "float64", "float16", ml_dtypes.bfloat16, "int64", "int32")]
FLOATS = DTYPES[:4]
S0, S1 = symbol("S0"), symbol("S1")
DIMS = st.sampled_from([0, 1, 2, 3, S0, S1, 2 * S0 + 1, (S0 + 1) / 2, S1 // 3, maximum(S0, S1), broadcast(S0, S1)])

text = st.text(max_size=8) | st.sampled_from(['"', "\\", "\n", "a\tb", "{x:1}", "\u2028", "\ud800", "%0", "}"])
floats = st.floats() | st.sampled_from([-0.0, 5e-324, 1e-06, float("nan"), float("inf"), float("-inf"), 0.1])
numbers = st.integers(-2**63, 2**63 - 1)
scalars = st.one_of(
    st.booleans(), numbers, floats, text, st.sampled_from(DTYPES), DIMS,
    st.builds(np.float32, st.floats(width=32)), st.builds(np.int32, st.integers(-2**31, 2**31 - 1)),
    st.builds(complex, floats, floats), st.sampled_from([attribute("gpu:0", "Place"), attribute("cpu", "Place")]))
nested = st.recursive(scalars, lambda s: st.lists(s, max_size=3), max_leaves=5)
values = scalars | st.lists(numbers, max_size=3) | nested
#: facts that any operation may carry
facts = st.dictionaries(st.sampled_from(["struct_name", "comp_op_name", "op_callstack", "op_role", "place"]),
                        values.map(attribute), max_size=2)

UNARY = ("exp", "tanh", "abs", "square", "assign")
BINARY = ("add", "multiply", "subtract", "maximum")


@st.composite
def programs(draw, symbolic=True, max_ops=12, strange=False):
    """A well-formed program; a strange one is well-formed but for operations that no dialect knows."""
    program = Program()
    if symbolic and draw(st.booleans()):
        program.constraints.record("equal", S0, 5, draw(text))
        program.constraints.record("divisible", S1 + 1, 2, "halves")
        program.constraints.record("at least", S1, 3, "windows")
        program.constraints.record("broadcastable", S1, symbol("S2"), draw(text))
    build = Builder(program.global_block())
    dims = DIMS if symbolic else st.integers(0, 3)
    seen = []
    for i in range(draw(st.integers(1, 3))):
        shape, dtype = tuple(draw(st.lists(dims, max_size=3))), draw(st.sampled_from(DTYPES))
        if draw(st.booleans()):
            seen.append(build.data(f"x{i}", shape, dtype, draw(st.booleans())))
        else:
            seen.append(build.parameter(f"w{i}{draw(text)}", shape, dtype))
    _operations(draw, build, seen, draw(st.integers(0, max_ops)), 0, KINDS + ("strange",) if strange else KINDS)
    if draw(st.booleans()):
        build.set_parameter("w", draw(st.sampled_from(seen)))
    return program


KINDS = ("unary", "binary", "scalar", "sum", "scale", "concat", "split", "slice", "cast", "vector", "full", "if",
         "while")


def _operations(draw, build, seen, count, depth, kinds):
    """`count` random operations of these kinds at the builder's place; `seen` grows with their results."""
    for _ in range(count):
        kind = draw(st.sampled_from(kinds))
        x = draw(st.sampled_from(seen))
        match kind:
            case "unary" if x.dtype in FLOATS:
                new = build.call(ROWS[draw(st.sampled_from(UNARY))], (x,), {}, draw(facts))
            case "binary":
                same = [v for v in seen if v.dtype == x.dtype and v.shape == x.shape]
                new = build.call(ROWS[draw(st.sampled_from(BINARY))], (x, draw(st.sampled_from(same))), {}, draw(facts))
            case "scalar" if x.dtype in FLOATS:
                number = build.full((), draw(floats), x.dtype)
                pair = (x, number) if draw(st.booleans()) else (number, x)
                new = build.call(ROWS[draw(st.sampled_from(BINARY))], pair, {}, draw(facts))
            case "slice" if x.ndim and isinstance(x.shape[-1], int):
                start, end = draw(st.integers(0, x.shape[-1])), x.shape[-1]
                new = build.call(ROWS["slice"], (x,), {"axes": (x.ndim - 1,), "starts": (start,), "ends": (end,)})
            case "cast":
                new = build.call(ROWS["cast"], (x,), {"dtype": draw(st.sampled_from(FLOATS))}, draw(facts))
            case "vector":
                parts = [x, *draw(st.lists(st.sampled_from(seen), max_size=2))]
                vector = build.combine(parts)
                new = build.build("builtin.split", [vector], {"stop_gradient": [True] * len(parts)},
                                  [v.type() for v in parts]).results()
            case "strange":
                new = _strange(draw, build, seen, x, depth, kinds)
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
                new = _if(draw, build, seen, x, depth, kinds)
            case "while" if depth < 2:
                new = _while(draw, build, seen, x, depth, kinds)
            case _:
                new = [build.full((2,), draw(numbers), "int64")]
        seen.extend(new)


def _if(draw, build, seen, x, depth, kinds):
    """An `if` that yields some of what its regions see, or nothing."""
    condition = build.full((), draw(st.booleans()), "bool")
    yielded = [x] if draw(st.booleans()) else []
    op = build.build("pd_op.if", [condition], {"stop_gradient": [True] * len(yielded)} if yielded else {},
                     [v.type() for v in yielded], num_regions=2)
    for region in op.regions:
        inside = Builder(region.add_block())
        visible = list(seen)
        _operations(draw, inside, visible, draw(st.integers(0, 3)), depth + 1, kinds)
        inside.build("cf.yield", [_like(draw, visible, y) for y in yielded])
    return op.results()


def _like(draw, seen, x):
    """One of the values of the type of x."""
    return draw(st.sampled_from([v for v in seen if v.type() == x.type()]))


def _while(draw, build, seen, x, depth, kinds):
    """A loop of 0 to 3 iterations that carries how many are left, and perhaps values."""
    left = build.full((), draw(st.integers(0, 3)), "int64")
    going, = build.call(ROWS["greater_than"], (left, build.full((), 0, "int64")), {})
    carried = [left, *[x] * draw(st.integers(0, 2))]
    op = build.build("pd_op.while", [going, *carried], {"stop_gradient": [True] * len(carried)},
                     [v.type() for v in carried], num_regions=1)
    body = op.regions[0].add_block()
    arguments = [body.add_arg(v.type()) for v in carried]
    inside, visible = Builder(body), [*seen, *arguments[1:]]
    _operations(draw, inside, visible, draw(st.integers(0, 3)), depth + 1, kinds)
    less, = inside.call(ROWS["subtract"], (arguments[0], inside.full((), 1, "int64")), {})
    going, = inside.call(ROWS["greater_than"], (less, inside.full((), 0, "int64")), {})
    inside.build("cf.yield", [going, less, *(_like(draw, visible, v) for v in carried[1:])])
    return op.results()


def _strange(draw, build, seen, x, depth, kinds):
    """An operation that no dialect knows, with any operands, results, attributes and regions."""
    operands = draw(st.lists(st.sampled_from(seen), max_size=3))
    attributes = draw(st.dictionaries(st.sampled_from(["a", "stop_gradient", "B_1", "with space", "\u00e9"]),
                                      values.map(attribute), max_size=3))
    results = [x.type()] * draw(st.integers(0, 2))
    regions = draw(st.integers(0, 2)) if depth < 2 else 0
    op = build.build(draw(st.sampled_from(["thermo.to_kelvin", "pd_op.no_such_op", "a.b.c"])), operands,
                     {k: v for k, v in attributes.items() if k != "stop_gradient"}, results, num_regions=regions)
    for region in op.regions:
        inside, visible = Builder(region.add_block()), list(seen)
        _operations(draw, inside, visible, draw(st.integers(0, 2)), depth + 1, kinds)
    return op.results()
