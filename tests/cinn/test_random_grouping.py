"""run(before) == run(after grouping, groups interpreted) over random programs, and what must hold of any grouping."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from minipd.cinn.compile import prepare
from minipd.cinn.frontend import build_groups, bytes_moved
from minipd.cinn.lower import lower
from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.parser import parse
from minipd.ir.program import Program
from minipd.ir.verify import verify
from tests.decomposition.programs import run

F64 = np.dtype("float64")
UNARY = ("exp", "tanh", "square", "abs", "sigmoid", "silu", "softmax", "isfinite_mask")
BINARY = ("add", "subtract", "multiply", "maximum", "where", "swiglu", "add_n")


@st.composite
def programs(draw):
    """Values over dimensions of a few sizes, joined at random: element-wise, reductions, broadcasts, shapes of every
    kind, and a matrix product as something that no group may hold."""
    program = Program()
    build = Builder(program.global_block())
    sizes = draw(st.sampled_from([(2, 3, 4), (3, 3, 3), (1, 5, 2), (4, 1, 1), (2, 0, 3)]))
    shapes = [sizes, sizes[1:], sizes[2:], (sizes[0], 1, sizes[2]), (sizes[0], sizes[1], 1), ()]
    values = [build.data(f"x{i}", draw(st.sampled_from(shapes)), F64) for i in range(3)]
    for _ in range(draw(st.integers(1, 14))):
        x = draw(st.sampled_from(values))
        kind = draw(st.sampled_from(["unary", "unary", "binary", "binary", "binary", "reduce", "reduce", "expand",
                                     "unsqueeze", "flatten", "matmul", "scale", "part", "join", "turn",
                                     "cut"]))
        values += _step(draw, build, values, x, kind)
    used = {operand.source() for op in program.walk() for operand in op.operands()}
    chosen = [v for v in values if v not in used] + draw(st.lists(st.sampled_from(values), max_size=3))
    for i, v in enumerate(dict.fromkeys(chosen)):
        build.output(f"y{i}", v)
    return program


def _step(draw, build, values, x, kind):
    n = len(x.shape)
    match kind:
        case "unary":
            name = draw(st.sampled_from(UNARY))
            if name == "isfinite_mask":
                mask, = build.call(ROWS["isfinite"], (x,), {})
                return build.call(ROWS["cast"], (mask,), {"dtype": F64})
            if name == "softmax":
                if not n or 0 in x.shape:
                    return []
                return build.call(ROWS[name], (x,), {"axis": draw(st.integers(0, n - 1))})
            return build.call(ROWS[name], (x,), {})
        case "binary":
            name = draw(st.sampled_from(BINARY))
            y = draw(st.sampled_from([v for v in values if _broadcasts(x.shape, v.shape)]))
            if name in ("swiglu", "add_n"):
                y = draw(st.sampled_from([v for v in values if v.shape == x.shape]))
                return build.call(ROWS[name], (x, y), {})
            if name == "where":
                mask, = build.call(ROWS["less_than"], (x, y), {})
                return build.call(ROWS["where"], (mask, x, y), {})
            return build.call(ROWS[name], (x, y), {})
        case "reduce" if n and 0 not in x.shape:
            axis = tuple(i for i in range(n) if draw(st.booleans()))
            name = draw(st.sampled_from(["sum", "max", "min", "mean"]))
            return build.call(ROWS[name], (x,), {"axis": axis, "keepdim": draw(st.booleans())}) if axis else []
        case "expand":
            y = draw(st.sampled_from([v for v in values if _broadcasts(x.shape, v.shape)]))
            shape = np.broadcast_shapes(x.shape, y.shape)
            return build.call(ROWS["expand"], (x,), {"shape": shape})
        case "unsqueeze" if n < 4:
            return build.call(ROWS["unsqueeze"], (x,), {"axis": (draw(st.integers(0, n)),)})
        case "flatten" if n > 1:
            return build.call(ROWS["reshape"], (x,), {"shape": (x.shape[0] * x.shape[1], *x.shape[2:])})
        case "matmul" if n > 1:
            return build.call(ROWS["matmul"], (x, x), {"transpose_y": True})
        case "part" if n:
            axis = draw(st.integers(0, n - 1))
            start = draw(st.integers(0, x.shape[axis]))
            end = draw(st.integers(start, x.shape[axis]))
            return build.call(ROWS["slice"], (x,), {"axes": (axis,), "starts": (start,), "ends": (end,)})
        case "join" if n:
            axis = draw(st.integers(0, n - 1))
            alike = [v for v in values if len(v.shape) == n and all(
                i == axis or m == k for i, (m, k) in enumerate(zip(v.shape, x.shape, strict=True)))]
            return build.call(ROWS["concat"], (x, draw(st.sampled_from(alike))), {"axis": axis})
        case "turn" if n > 1:
            return build.call(ROWS["transpose"], (x,), {"perm": tuple(draw(st.permutations(range(n))))})
        case "cut" if n and x.shape[-1] in (4, 6, 8, 12):
            return build.call(ROWS["reshape"], (x,), {"shape": (*x.shape[:-1], 2, x.shape[-1] // 2)})
        case "scale":
            return build.call(ROWS["scale"], (x,), {"scale": 0.5, "bias": -1.0})
    return []


def _broadcasts(a, b):
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1], strict=False)) and len(a) + len(b) < 9


@settings(max_examples=150)
@given(programs(), st.integers(0, 99))
def test_grouping_keeps_what_a_program_means(program, seed):
    r = np.random.default_rng(seed)
    feed = {}
    for op in program.global_block():
        if op.name() == "pd_op.data":
            x = np.asarray(r.normal(size=op.result(0).shape))
            if x.size > 2:
                x.flat[:2] = r.choice([0.0, np.inf, -np.inf, np.nan, 1.5], 2)
            feed[op.attributes["name"].value] = x
    with np.errstate(all="ignore"):
        before = run(program, feed)
        prepare(program)
        decomposed = bytes_moved(program)
        groups = build_groups(program)
        verify(program)
        assert parse(program.to_string("exact")) == program
        after = run(program, feed)
    for name, want in before.items():
        np.testing.assert_allclose(after[name], want, rtol=1e-12, atol=1e-12, err_msg=name)
    assert bytes_moved(program) <= decomposed
    for group in groups:
        assert lower(group).params                      # whatever is grouped can be lowered
