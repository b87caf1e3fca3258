"""Functions that Paddle has one operator for: written as it, read again, the numbers stay."""

import numpy as np
import pytest

import minipd as paddle
from minipd.ir.attributes import attribute
from minipd.ir.builder import Builder
from minipd.ir.paddle import from_paddle, to_paddle
from minipd.ir.parser import parse
from minipd.ir.traced import trace
from minipd.jit.rerun import rerun
from minipd.static import InputSpec

F = paddle.nn.functional
RNG = np.random.default_rng(11)


def floats(*shape):
    return RNG.standard_normal(shape).astype("float32")


def probabilities(*shape):
    return RNG.uniform(0.05, 0.95, shape).astype("float32")


X, SQUARE, IMAGE = floats(3, 5), floats(4, 4), floats(2, 4, 6, 6)
LABELS = np.array([0, 4, 2])
CASES = {
    **{name: (getattr(F, name), X) for name in (
        "relu6", "elu", "selu", "celu", "leaky_relu", "hardswish", "hardsigmoid", "hardtanh", "hardshrink",
        "softshrink", "tanhshrink", "softplus", "softsign", "mish", "swish", "thresholded_relu")},
    "elu otherwise": (lambda x: F.elu(x, 0.3), X), "hardtanh otherwise": (lambda x: F.hardtanh(x, -0.5, 2.0), X),
    "softplus otherwise": (lambda x: F.softplus(x, 2.0, 1.0), X), "maxout": (lambda x: F.maxout(x, 2), IMAGE),
    "prelu": (F.prelu, X, floats(5)), "prelu of one": (F.prelu, X, floats(1)),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), IMAGE),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), IMAGE),
    "channel_shuffle": (lambda x: F.channel_shuffle(x, 2), IMAGE),
    "bmm": (paddle.bmm, floats(2, 3, 4), floats(2, 4, 5)), "mv": (paddle.mv, X, floats(5)),
    "dot": (paddle.dot, floats(5), floats(5)), "kron": (paddle.kron, floats(2, 3), floats(3, 2)),
    "addmm": (lambda z, x, y: paddle.addmm(z, x, y, beta=0.5, alpha=2.0), floats(3, 4), X, floats(5, 4)),
    "baddbmm": (lambda z, x, y: paddle.baddbmm(z, x, y, beta=0.5), floats(2, 3, 5), floats(2, 3, 4), floats(2, 4, 5)),
    "trace": (lambda x: paddle.trace(x, 1), SQUARE), "dist": (paddle.dist, X, floats(3, 5)),
    "diag": (lambda x: paddle.diag(x, 1, 0.5), floats(3)), "diagonal": (lambda x: paddle.diagonal(x, -1), SQUARE),
    "tile": (lambda x: paddle.tile(x, [2, 1, 3]), X), "unbind": (lambda x: sum(paddle.unbind(x, 1)), X),
    "unstack": (lambda x: sum(paddle.unstack(x, -1)), X),
    "repeat_interleave": (lambda x: paddle.repeat_interleave(x, 3, 1), X),
    "meshgrid": (lambda x, y: sum(paddle.meshgrid(x, y)), floats(3), floats(4)),
    "einsum": (lambda x, y: paddle.einsum("ij,kj->ik", x, y), X, floats(4, 5)),
    "index_select": (lambda x, i: paddle.index_select(x, i, 1), X, np.array([4, 0, 0])),
    "gather_nd": (paddle.gather_nd, X, np.array([[0, 4], [2, 1]])),
    "scatter": (paddle.scatter, X, np.array([2, 0]), floats(2, 5)),
    "scatter, added": (lambda x, i, y: paddle.scatter(x, i, y, overwrite=False), X, np.array([2, 2]), floats(2, 5)),
    "scatter_nd_add": (paddle.scatter_nd_add, X, np.array([[2], [2]]), floats(2, 5)),
    "take_along_axis": (lambda x, i: paddle.take_along_axis(x, i, 1), X, np.array([[0], [4], [1]])),
    "put_along_axis": (lambda x, i, v: paddle.put_along_axis(x, i, v, 1), X, np.array([[0], [4], [1]]), floats(3, 1)),
    "masked_fill": (lambda x, m: paddle.masked_fill(x, m, 0.5), X, X > 0),
    "lerp": (lambda x, y: paddle.lerp(x, y, 0.3), X, floats(3, 5)), "lerp of three": (paddle.lerp, X, X + 1, X * X),
    "median": (paddle.median, X), "median of rows": (lambda x: paddle.median(x, axis=1, keepdim=True), X),
    "one_hot": (lambda x: F.one_hot(x, 5), LABELS), "kl_div": (F.kl_div, X, probabilities(3, 5)),
    "l1_loss": (F.l1_loss, X, floats(3, 5)),
    "smooth_l1_loss": (lambda x, y: F.smooth_l1_loss(x, y, delta=0.5), X, floats(3, 5)),
    "binary_cross_entropy": (F.binary_cross_entropy, probabilities(3, 5), probabilities(3, 5)),
    "with logits": (F.binary_cross_entropy_with_logits, X, probabilities(3, 5)),
    "nll_loss": (F.nll_loss, X, LABELS), "nll_loss, weighted": (F.nll_loss, X, LABELS, probabilities(5)),
    "cross_entropy, each": (lambda x, y: F.cross_entropy(x, y, reduction="none"), X, LABELS[:, None]),
    "cross_entropy, soft": (lambda x, y: F.cross_entropy(x, F.softmax(y), soft_label=True), X, floats(3, 5)),
    "softmax_with_cross_entropy": (F.softmax_with_cross_entropy, X, LABELS[:, None]),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, 1e-3, w, b), IMAGE, floats(4), floats(4)),
    "instance_norm": (F.instance_norm, IMAGE),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, [6, 6], w, b), IMAGE, floats(36), floats(36)),
    "batch_norm": (lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b), IMAGE, floats(4), probabilities(4), floats(4),
                   floats(4)),
    "normalize": (lambda x: F.normalize(x, axis=1), X),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2), IMAGE),
    "interpolate, smooth": (lambda x: F.interpolate(x, size=[4, 9], mode="bilinear"), IMAGE),
    "interpolate, corners": (lambda x: F.interpolate(x, [9, 9], None, "bicubic", align_corners=True), IMAGE),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_written_as_one_and_read_again(name):
    f, *arrays = CASES[name]
    specs = [InputSpec(a.shape, str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]
    program = trace(f, *specs).program
    written = to_paddle(program)
    notes = sum("whole" in dict(op.attributes["as_written"].value) for op in program.walk()
                if "as_written" in op.attributes)
    assert notes == 1 and len(list(written.walk())) < len(list(program.walk())) + 6
    given = {f"x{i}": paddle.to_tensor(a) for i, a in enumerate(arrays)}
    found = rerun(from_paddle(written), given, {})["output_0"]
    expected = f(*given.values())
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-5, atol=1e-6)


def leaky():
    return trace(lambda x: F.leaky_relu(x, 0.2) + 1, InputSpec([3], "float32", "x")).program


def names(program):
    return [op.name() for op in to_paddle(program).walk()]


def test_a_call_that_is_no_longer_all_there_is_written_as_what_is():
    assert "pd_op.leaky_relu" in names(leaky())
    changed = leaky()
    first = next(op for op in changed.walk() if op.name() == "pd_op.greater_equal")
    second = first.clone()
    Builder(first.parent, first.next).insert(second)
    first.result(0).replace_all_uses_with(second.result(0))
    assert "pd_op.leaky_relu" not in names(changed) and "pd_op.where" in names(changed)


def test_a_note_survives_a_clone_and_exact_text():
    program = leaky()
    assert "pd_op.leaky_relu" in names(program.clone())
    assert "pd_op.leaky_relu" in names(parse(program.to_string("exact")))


@pytest.mark.parametrize("note", [
    5, (), ("leaky_relu",), ("leaky_relu", "pd_op.where", (), (), ()), ("leaky_relu", 3, 4, 5, 6),
    ("leaky_relu", "pd_op.where", (("x", (9, 9)),), (), ((0, 0),)), ("none", "pd_op.where", (), (), ((0, 0),)),
])
def test_a_damaged_note_says_nothing(note):
    program = leaky()
    for op in program.walk():
        if "as_written" in op.attributes:
            op.attributes["as_written"] = attribute((("whole", note),))
    assert "pd_op.leaky_relu" not in names(program) and "pd_op.where" in names(program)


def test_a_training_batch_norm_writes_its_statistics_in_place():
    def net():
        made = paddle.nn.BatchNorm2D(4)
        made.train()
        return made
    ours, theirs = net(), net()
    traced = trace(theirs, InputSpec([2, 4, 6, 6], "float32", "x"), state=dict(theirs.named_buffers()))
    written = to_paddle(traced.program)
    kinds = [op.name() for op in written.walk()]
    assert "pd_op.batch_norm_" in kinds and "builtin.set_parameter" not in kinds
    again = from_paddle(written)
    given = {"x": paddle.to_tensor(IMAGE)} | {n: paddle.to_tensor(a) for n, a in traced.captures.items()}
    state = dict(theirs.named_buffers())
    found = rerun(again, given, state)["output_0"]
    expected = ours(given["x"])
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-5, atol=1e-6)
    for name, buffer in ours.named_buffers():
        np.testing.assert_allclose(state[name].numpy(), buffer.numpy(), rtol=2e-5, atol=1e-6)
