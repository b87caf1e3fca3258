"""Passes written by hand do what the rules of the library do (benchmarks/passes_by_hand)."""

import importlib
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minipd as paddle
from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.program import Program
from minipd.ir.schema import op_attrs, result_values, tensor_operands
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.nn import functional as F
from minipd.passes import table
from minipd.passes.pattern import apply_patterns_greedily

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
F32 = dtypes.float32.np


@contextmanager
def importing():
    """Benchmarks may be imported; what they register is forgotten: it is no part of the library."""
    before = dict(table.MAKERS)
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield
    finally:
        sys.path.remove(str(BENCHMARKS))
        for name in set(table.MAKERS) - set(before):
            del table.MAKERS[name]


with importing():
    from passes_by_hand import PASSES
    from passes_code import code_of, counted, definitions, with_code


def forms(name):
    """The pass by hand, and the rules that it stands for."""
    module, rules, by_hand, cls = PASSES[name]
    library = importlib.import_module(f"minipd.passes.library.{module}")
    return getattr(sys.modules[f"passes_by_hand.{by_hand}"], cls)("by_hand"), [getattr(library, r) for r in rules]


def described(program):
    """What is computed, whatever the order of operations that do not need each other."""
    known = {}

    def of(op):
        attrs = op_attrs(op) if op.row is not None else {k: str(v) for k, v in op.attributes.items()}
        operands = tensor_operands(op) if op.row is not None else op.operands_source()
        return op.name(), sorted(attrs.items(), key=lambda pair: pair[0]), [known[v] for v in operands]
    outputs = []
    for op in program.global_block():
        if op.name() == "builtin.combine" or op.name() == "builtin.split":
            continue
        text = repr(of(op))
        for i, result in enumerate(result_values(op) if op.row is not None else op.results()):
            known[result] = f"{text}[{i}]:{result.stop_gradient}"
        if op.name() == "builtin.shadow_output":
            outputs.append(text)
    return outputs, program.num_ops()


def agree(name, program):
    """Both forms leave the same program; returns how many rewrites that took."""
    by_hand, rules = forms(name)
    one, other = program.clone(), program.clone()
    changes = apply_patterns_greedily(one, rules), by_hand.run(other)
    verify(one)
    verify(other)
    assert described(one) == described(other)
    assert changes[0] == changes[1]
    assert by_hand.run(other) == 0
    return changes[0]


def rope(x, cos, sin):
    a, b = x[..., :4], x[..., 4:]
    return paddle.concat([a * cos - b * sin, b * cos + a * sin], -1)


def turned_other_way(x, cos, sin):
    a, b = x[..., :4], x[..., 4:]
    return paddle.concat([cos * a - sin * b, sin * a + cos * b], -1)


def not_halves(x, cos, sin):
    a, b = x[..., :4], x[..., 2:6]
    return paddle.concat([a * cos - b * sin, b * cos + a * sin], -1)


def rms(x, w):
    return x * paddle.rsqrt(paddle.square(x).mean(-1, keepdim=True) + 1e-6) * w


def rms_other_way(x, w):
    return w * (paddle.rsqrt(paddle.square(x).mean(-1, keepdim=True) + 1e-6) * x)


def rms_of_another(x, w):
    return (x + w) * paddle.rsqrt(paddle.square(x).mean(-1, keepdim=True) + 1e-6) * w


def rms_seen(x, w):
    mean = paddle.square(x).mean(-1, keepdim=True)
    return x * paddle.rsqrt(mean + 1e-6) * w, mean


def sum_norm(x, y, w, b):
    return ROWS["layer_norm"](x + y, w, b, epsilon=1e-5)


def dropped(x, y):
    return y + F.dropout(x, 0.25)


T = ((2, 8), (2, 8))
#: pass -> functions with the shapes of their operands, and how often the pass fires on each
EXAMPLES = {
    "silu_fuse_pass": [(lambda x, y: x * F.sigmoid(x), T, 1), (lambda x, y: F.sigmoid(x) * x, T, 1),
                       (lambda x, y: x * F.sigmoid(y), T, 0), (lambda x, y: (x * F.sigmoid(x), F.sigmoid(x)), T, 1),
                       (lambda x, y: (s := F.sigmoid(x)) * x + s, T, 0),
                       (lambda x, y: (a := x * F.sigmoid(x)) * F.sigmoid(a), T, 2)],
    "swiglu_fuse_pass": [(lambda x, y: F.silu(x) * y, T, 1), (lambda x, y: y * F.silu(x), T, 1),
                         (lambda x, y: F.silu(x) * F.silu(y), T, 1), (lambda x, y: F.silu(x) * y[0], T, 0),
                         (lambda x, y: F.silu(x) * F.silu(x), T, 1)],
    "fused_rotary_position_embedding_pass": [(rope, ((3, 8), (4,), (4,)), 1),
                                             (turned_other_way, ((3, 8), (4,), (4,)), 1),
                                             (not_halves, ((3, 8), (4,), (4,)), 0),
                                             (rope, ((3, 8), (1,), (3, 1)), 1)],
    "add_norm_fuse_pass, rms norm": [(rms, ((2, 8), (8,)), 1), (rms_of_another, ((2, 8), (8,)), 0),
                                     (rms_seen, ((2, 8), (8,)), 0),
                                     (rms_other_way, ((2, 8), (8,)), 1), (rms, ((2, 8), (2, 8)), 0)],
    "add_norm_fuse_pass, norm of a sum": [(sum_norm, (*T, (8,), (8,)), 1), (sum_norm, ((2, 8), (8,), (8,), (8,)), 0)],
    "remove_redundant_transpose_pass": [
        (lambda x: x.transpose([1, 0, 2]).transpose([2, 0, 1]), ((2, 3, 4),), 1),
        (lambda x: x.transpose([1, 0, 2]).transpose([1, 0, 2]) + 1.0, ((2, 3, 4),), 1),
        (lambda x: x.transpose([1, 2, 0]).transpose([2, 0, 1]).transpose([0, 2, 1]), ((2, 3, 4),), 1),
        (lambda x: x.transpose([1, 2, 0]).transpose([1, 2, 0]).transpose([0, 2, 1]), ((2, 3, 4),), 2),
        (lambda x: ((y := x.transpose([1, 0, 2])).transpose([1, 0, 2]) + 1.0, y), ((2, 3, 4),), 1),
        (lambda x: ((y := x.transpose([1, 0, 2])).transpose([2, 0, 1]) + 1.0, y), ((2, 3, 4),), 0)],
    "matmul_transpose_fuse_pass": [
        (lambda x, y: x.transpose([1, 0]).matmul(y), T, 1), (lambda x, y: x.matmul(y.transpose([1, 0])), T, 1),
        (lambda x, y: x.transpose([1, 0]).matmul(y).transpose([1, 0]), T, 2),
        (lambda x: x.transpose([1, 0, 2]).matmul(x), ((3, 3, 3),), 0)],
    "matmul_scale_fuse_pass": [
        (lambda x, y: x.matmul(y, transpose_y=True) * 0.5, ((9, 2), (7, 2)), 1),
        (lambda x, y: x.matmul(y, transpose_y=True) / 4.0, ((9, 2), (7, 2)), 1),
        (lambda x, y: paddle.scale(x.matmul(y, transpose_y=True), 0.5), ((9, 2), (7, 2)), 1),
        (lambda x, y: paddle.scale(x.matmul(y, transpose_y=True), 0.5, 1.0), ((9, 2), (7, 2)), 0),
        (lambda x, y: x.matmul(y, transpose_y=True) * 0.5, ((2, 9), (3, 9)), 0)],
    "fused_dropout_add_pass": [(dropped, T, 1), (lambda x, y: F.dropout(x, 0.25) + y[0], T, 0)],
    "fused_gemm_epilogue_pass, bias": [
        (lambda x, y, b: x.matmul(y) + b, ((3, 4), (4, 5), (5,)), 1),
        (lambda x, y, b: b + x.matmul(y), ((3, 4), (4, 5), (5,)), 1),
        (lambda x, y, b: x.matmul(y) + b, ((3, 4), (4, 5), (1, 5)), 1),
        (lambda x, y, b: x.matmul(y) + b, ((3, 4), (4, 5), (3, 5)), 0)],
}
assert set(EXAMPLES) == set(PASSES)


@pytest.mark.parametrize("name", PASSES)
def test_both_forms_leave_the_same_program(name):
    for function, shapes, times in EXAMPLES[name]:
        program = trace(function, *(Meta(shape, F32) for shape in shapes)).program
        assert agree(name, program) == times


#: what random programs are made of
UNARY, BINARY = ("sigmoid", "silu", "square", "rsqrt"), ("multiply", "add", "matmul", "subtract")


@st.composite
def programs(draw):
    """Operators of the formulas on square matrices, put together at random, some with a gradient."""
    program = Program()
    build = Builder(program.global_block())
    values = [build.data(f"x{i}", (4, 4), F32, stop_gradient=draw(st.booleans())) for i in range(2)]
    for _ in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(["unary", "binary", "number", "mean", "transpose"]))
        x = draw(st.sampled_from(values))
        if kind == "unary":
            found = build.call(ROWS[draw(st.sampled_from(UNARY))], (x,), {})
        elif kind == "binary":
            found = build.call(ROWS[draw(st.sampled_from(BINARY))], (x, draw(st.sampled_from(values))), {})
        elif kind == "number":
            row = ROWS[draw(st.sampled_from(["add", "multiply", "divide"]))]
            found = build.call(row, (x, build.full((), draw(st.sampled_from([0.5, 2.0])), F32)), {})
        elif kind == "mean":
            found = build.call(ROWS["mean"], (x,), {"axis": (1,), "keepdim": True})
            found = build.call(ROWS["expand"], found, {"shape": (4, 4)})
        else:
            found = build.call(ROWS["transpose"], (x,), {"perm": (1, 0)})
        values.append(found[0])
    for i, value in enumerate(values[-2:]):
        build.output(f"y{i}", value)
    return program


@settings(max_examples=40)
@given(programs())
def test_both_forms_leave_the_same_random_program(program):
    for name in PASSES:
        agree(name, program)


def test_what_counts_as_a_line_of_code():
    text = '''"""Doc."""
import os

# a comment
LIMIT = 3       # one


@decorated("x")
def f(x):
    """Doc
    of two lines."""
    return g(x,

             LIMIT)


def g(*xs):
    return xs


def unused():
    return 0
'''
    assert with_code(text) == {2, 5, 8, 9, 12, 14, 17, 18, 21, 22}
    assert set(definitions(text)) == {"LIMIT", "f", "g", "unused"}


def test_counting_follows_what_a_definition_uses(monkeypatch):
    import passes_code
    text = "A = 1\nB = 2\ndef f():\n    return A\nclass C:\n    x = f\n"
    monkeypatch.setattr(passes_code, "source", lambda module: text)
    assert code_of("anything", ["C"]) == {1, 3, 4, 5, 6}


def test_formulas_are_shorter():
    assert all(p.formulas < p.by_hand for p in counted())
    assert np.median([p.shorter for p in counted()]) > 0.4
