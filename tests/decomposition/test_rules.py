"""Every rule against its row's kernel: all cases of the row, in every dtype, eagerly and as a decomposed program."""

import numpy as np
import pytest

import minipd  # noqa: F401  (wires every floor)
from minipd.autograd.mode import no_grad
from minipd.decomposition import DecomposePass
from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ir.builder import Builder
from minipd.ir.parser import parse
from minipd.ir.program import Program
from minipd.ir.verify import verify
from tests.decomposition.programs import run
from tests.ops.test_rows import cast_inputs, with_dtypes

RULES = {name: row for name, row in ROWS.items() if "decompose" in row.columns and row.dialect == "pd_op"}
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

#: relative to the largest value of a result: the order of additions differs, and low precision rounds once
ROUNDING = {"float64": 1e-14, "float32": 4e-6, "float16": 1e-3, "bfloat16": 8e-3}


def program_of(name, inputs, attrs):
    """The call as a program with inputs x0, x1, ... and outputs y0, y1, ...; Python numbers become constants."""
    program = Program()
    build = Builder(program.global_block())
    like = next((x.dtype for x in inputs if isinstance(x, np.ndarray) and x.dtype.kind != "b"), np.dtype("float32"))
    values = [build.data(f"x{i}", x.shape, x.dtype) if isinstance(x, np.ndarray) else
              build.full((), x, np.dtype(bool) if isinstance(x, bool) else like) for i, x in enumerate(inputs)]
    for i, value in enumerate(build.call(ROWS[name], values, attrs)):
        build.output(f"y{i}", value)
    return program


def kernel(name, inputs, attrs):
    with no_grad():
        out = ROWS[name](*[Tensor(x) if isinstance(x, np.ndarray) else x for x in inputs], **attrs)
    return [o.payload for o in (out if ROWS[name].multi else (out,))]


def equal(got, want):
    """To the rounding of the dtype; ints, bools, NaN and infinity exactly."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    limit = ROUNDING.get(want.dtype.name)
    if limit is None:
        np.testing.assert_array_equal(got, want)
        return
    got, want = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite])
    largest = np.abs(want[finite]).max(initial=1e-3)
    np.testing.assert_allclose(got[finite], want[finite], rtol=limit, atol=limit * largest)


def check(name, inputs, attrs):
    feed = {f"x{i}": x for i, x in enumerate(inputs) if isinstance(x, np.ndarray)}
    want = kernel(name, inputs, attrs)
    program = program_of(name, inputs, attrs)
    before = run(program, feed)
    assert DecomposePass().run(program) >= 1
    assert not any(op.row is not None and "decompose" in op.row.columns for op in program.walk())
    verify(program)
    assert parse(program.to_string("exact")) == program
    after = run(program, feed)
    for i, y in enumerate(want):
        equal(before[f"y{i}"], y)
        equal(after[f"y{i}"], y)


@pytest.mark.parametrize("name", list(RULES))
def test_a_rule_equals_the_kernel(name):
    for case, dtype in with_dtypes(name):
        inputs = tuple(np.asarray(x) if isinstance(x, np.ndarray) else x for x in cast_inputs(case, dtype))
        try:
            check(name, inputs, case.attrs)
        except Exception as error:
            error.add_note(f"case {case.label} as {dtype}")
            raise


SPECIAL = np.array([[0.5, np.nan, 1.0], [np.inf, 2.0, -1.0], [-np.inf, -np.inf, -np.inf], [-np.inf, 3.0, 88.0],
                    [-1e4, 1e4, 0.0]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name, attrs", [
    ("softmax", {"axis": 1}), ("softmax", {"axis": 0}), ("mean", {"axis": (1,)}), ("mean", {"axis": (0, 1)}),
    ("sigmoid", {}), ("silu", {}), ("logsumexp", {"axis": (1,)}), ("logsumexp", {"axis": (0, 1), "keepdim": True})])
def test_nan_and_infinity_go_where_the_kernel_puts_them(name, attrs, dtype):
    check(name, (SPECIAL.astype(dtype),), attrs)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (5, 1), (3, 4, 33), (0, 3), (3, 0)])
@pytest.mark.parametrize("name", ["softmax", "mean"])
def test_odd_sizes(name, shape):
    x = np.random.default_rng(0).normal(size=shape)
    for axis in range(x.ndim):
        if name == "softmax" and not x.shape[axis]:
            continue                        # the maximum of nothing
        check(name, (x,), {"axis": axis if name == "softmax" else (axis,)})


@pytest.mark.parametrize("name", ["cross_entropy_with_softmax", "cross_entropy_with_softmax_grad"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_ignored_labels_and_every_axis(name, axis):
    r = np.random.default_rng(axis)
    logits = r.normal(size=(4, 5, 3))
    shape = tuple(1 if i == axis else n for i, n in enumerate(logits.shape))
    label = r.integers(0, logits.shape[axis], shape)
    for ignore_index in (-100, 0, 2):
        label.flat[1] = ignore_index
        if name.endswith("grad"):
            inputs: tuple = (label, logits, r.normal(size=shape))
        else:
            inputs = (logits, label)
        check(name, inputs, {"axis": axis, "ignore_index": ignore_index})
        check(name, tuple(x.astype(np.int16) if x is label else x for x in inputs),
              {"axis": axis, "ignore_index": ignore_index})


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_a_shard_gives_what_it_has(dtype):
    """Of 10 positions this shard holds 4 to 6: the other numbers are hits elsewhere, and contribute 0 here."""
    x = np.arange(1, 7).reshape(2, 3).astype(dtype)
    for indices in (np.array([[5], [9]]), np.array([[0, 4, 6, 3], [7, 5, 5, 9]])):
        check("take_along_axis", (x, indices), {"axis": 1, "window": (10, 4)})
        check("take_along_axis_grad", (np.ones(indices.shape, dtype), indices, x), {"axis": 1, "window": (10, 4)})
    label, g = np.array([[4], [8]]), np.array([[0.5], [2.0]])
    check("cross_entropy_with_softmax_grad", (label, x.astype(np.float64), g), {"axis": 1, "window": (10, 4)})


@pytest.mark.parametrize("bad", [-1, 3])
def test_a_number_that_nobody_has_gives_nan(bad):
    """Kernels refuse it; code that is element-wise cannot, and must not give a number."""
    program = program_of("cross_entropy_with_softmax", (SPECIAL[3:], np.array([[bad], [1]])), {"axis": 1})
    feed = {"x0": np.zeros((2, 3)), "x1": np.array([[bad], [1]])}
    with pytest.raises(ValueError, match=f"got {bad}"):
        run(program, feed)
    DecomposePass().run(program)
    loss = run(program, feed)["y1"]
    assert np.isnan(loss[0, 0]) and loss[1, 0] == np.log(3)


def test_low_precision_is_rounded_once():
    """A rule on bfloat16 is the rule on float32, with a cast at either end."""
    program = program_of("silu", (np.zeros(3, dtypes.bfloat16.np),), {})
    DecomposePass().run(program)
    ops = [op for op in program.walk() if op.name() not in ("pd_op.data", "pd_op.full", "builtin.shadow_output")]
    assert [ops[0].name(), ops[-1].name()] == ["pd_op.cast"] * 2
    assert all(op.result(0).dtype == np.float32 for op in ops[:-1])


def test_symbolic_shapes_decompose_too():
    from minipd.framework.dim import symbol
    program = Program()
    build = Builder(program.global_block())
    with program.constraints.collect():
        x = build.data("x", (symbol("S0"), 4), "float64")
        y, = build.call(ROWS["mean"], (x,), {"axis": (0, 1), "keepdim": False})
        z, = build.call(ROWS["expand_as"], (y, x), {})
    build.output("z", z)
    DecomposePass().run(program)
    verify(program)
    assert tuple(z.shape) == (symbol("S0"), 4)
    x = np.random.default_rng(1).normal(size=(3, 4))
    np.testing.assert_allclose(run(program, {"x": x})["z"], np.full((3, 4), x.mean()))


def test_a_meta_of_a_kernel_stands_for_the_shape():
    """`reduce_as` reads of its target nothing but the shape."""
    x = np.ones((2, 3))
    assert kernel("reduce_as", (x, np.empty((3,))), {})[0].tolist() == [2, 2, 2]
    out = ROWS["reduce_as"].columns["decompose"](Tensor(x), Tensor(Meta((3,), x.dtype)))
    assert out.tolist() == [2, 2, 2]
