"""`auto_recompute`: the cut is minimal, the program computes the same, and keeps less."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minipd as paddle
from minipd.decomposition import DecomposePass, auto_recompute
from minipd.decomposition.recompute import minimal_cut
from minipd.ir.backward import append_backward
from minipd.ir.schema import constant_of
from minipd.ir.sizes import nbytes
from minipd.ir.trace import Trace
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.static import InputSpec
from tests.decomposition.programs import run


# ------------------------------------------------------------------------------------------------------- the cut
def severed(edges, cut):
    """Whether no path is left from "s" to "t"."""
    seen, pending = {"s"}, ["s"]
    while pending:
        node = pending.pop()
        for end in edges.get(node, {}):
            if (node, end) not in cut and end not in seen:
                seen.add(end)
                pending.append(end)
    return "t" not in seen


def least(edges):
    """The weight of the least cut, by trying all of them."""
    every = [(a, b) for a, ends in edges.items() for b in ends]
    cuts = (cut for n in range(len(every) + 1) for cut in itertools.combinations(every, n) if severed(edges, cut))
    return min(sum(edges[a][b] for a, b in cut) for cut in cuts)


NODES = ("s", "a", "b", "c", "t")


@settings(deadline=None)
@given(st.dictionaries(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)).filter(lambda e: e[0] != e[1]),
                       st.integers(0, 9), max_size=9))
def test_no_cut_weighs_less(found):
    edges = {}
    for (a, b), weight in found.items():
        edges.setdefault(a, {})[b] = weight
    cut = minimal_cut(edges, "s", "t")
    assert sum(edges[a][b] for a, b in cut) == least(edges)
    assert severed(edges, {*cut, *(e for e, w in found.items() if w == 0)})


def test_what_cannot_be_cut_is_refused():
    with pytest.raises(ValueError, match="expected a finite weight on every path"):
        minimal_cut({"s": {"a": float("inf")}, "a": {"t": float("inf")}}, "s", "t")


# --------------------------------------------------------------------------------------------------- the program
def differentiated(function, *arrays):
    """(program, inputs, outputs, seeds, number of the last forward operation, of the first of the gradient, feed)."""
    specs = [InputSpec(list(x.shape), "float64", f"x{i}", stop_gradient=False) for i, x in enumerate(arrays)]
    traced = trace(function, *specs)
    program, tracer = traced.program, Trace(traced.program)
    DecomposePass().run(program)
    inputs, outputs = traced.input_values, traced.output_values
    end = len(program.global_block())
    seeds = [tracer.input(f"g{i}", np.zeros(v.shape)) for i, v in enumerate(outputs)]
    start = len(program.global_block())
    for i, g in enumerate(append_backward(program, outputs, inputs, seeds, trace=tracer)):
        if g is not None:
            tracer.build.output(f"dx{i}", g)
    r = np.random.default_rng(1)
    feed = {f"x{i}": x for i, x in enumerate(arrays)} | {f"g{i}": r.normal(size=tuple(v.shape))
                                                         for i, v in enumerate(outputs)}
    return program, inputs, outputs, seeds, end - 1, start, feed


def bytes_kept(program, end, inputs, outputs):
    """Bytes that the gradient reads of the forward part, beside its inputs and outputs."""
    ops = program.global_block().ops
    ahead = set(ops[:end + 1])
    read = {v for op in ops[end + 1:] for v in op.operands_source() if v.get_defining_op() in ahead}
    return sum(nbytes(v) for v in read - {*inputs, *outputs} if constant_of(v) is None
               and v.get_defining_op().name() not in ("pd_op.data", "builtin.parameter"))


X = np.random.default_rng(0).normal(size=(6, 40))


def softmax_gelu(x):
    return paddle.nn.functional.softmax(paddle.nn.functional.gelu(x) * 2.0) * 3.0


def norm(x, w):
    return x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w


def two_layers(x, w):
    return paddle.matmul(paddle.tanh(paddle.matmul(x.sin().exp(), w)), w, transpose_y=True).sigmoid()


@pytest.mark.parametrize("function, arrays, most", [
    # of the softmax the largest and the sum of each row; its result, 3 y, is an output, but y is not
    (softmax_gelu, (X,), 2 * 6 * 8), (norm, (X, X[0]), 6 * 8),
    # what comes out of each product
    (two_layers, (X, X.T @ X / 9), 2 * 6 * 40 * 8)])
def test_it_keeps_less_and_computes_the_same(function, arrays, most):
    program, inputs, outputs, seeds, end, start, feed = differentiated(function, *arrays)
    want, before = run(program, feed), bytes_kept(program, end, inputs, outputs)
    number = len(program.global_block())
    found, again = auto_recompute(program, inputs, outputs, seeds, end, start)
    assert found is program and again == end
    verify(program)
    after = bytes_kept(program, end, inputs, outputs)
    assert after <= most < before and len(program.global_block()) > number
    got = run(program, feed)
    assert got.keys() == want.keys()
    for name in want:
        np.testing.assert_array_equal(got[name], want[name])


def test_only_what_is_named_runs_again():
    program, inputs, outputs, seeds, end, start, _ = differentiated(lambda x: x.sin().exp().cos().tanh(), X)
    auto_recompute(program, inputs, outputs, seeds, end, start, ["pd_op.sin"])
    behind = [op.name() for op in program.global_block().ops[start:]]
    assert "pd_op.exp" not in behind
    program, inputs, outputs, seeds, end, start, feed = differentiated(lambda x: x.sin().exp().cos().tanh(), X)
    want = run(program, feed)
    auto_recompute(program, inputs, outputs, seeds, end, start)
    assert "pd_op.exp" in [op.name() for op in program.global_block().ops[start:]]
    assert bytes_kept(program, end, inputs, outputs) == 0
    np.testing.assert_array_equal(run(program, feed)["dx0"], want["dx0"])


def test_random_draws_are_not_drawn_again():
    program, inputs, outputs, seeds, end, start, _ = differentiated(
        lambda x: (paddle.nn.functional.dropout(x, 0.5) * x.sin()).exp(), X)
    before = sum(op.name() == "pd_op.uniform" for op in program.walk())
    auto_recompute(program, inputs, outputs, seeds, end, start)
    assert sum(op.name() == "pd_op.uniform" for op in program.walk()) == before


@pytest.mark.parametrize("end, start", [(3, 3), (-1, 2), (1, 1000)])
def test_numbers_out_of_order(end, start):
    program, inputs, outputs, seeds, *_ = differentiated(norm, X, X[0])
    with pytest.raises(ValueError, match="expected the last operation of the forward part before the first"):
        auto_recompute(program, inputs, outputs, seeds, end, start)
