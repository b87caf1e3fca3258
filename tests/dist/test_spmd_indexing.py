"""Rules of look-ups, losses, creation, optimizer steps, reshard and match (E1, E2, E5)."""

import numpy as np
import pytest

from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.spmd import DECOMPOSE, infer
from minipd.dist.spmd.table import Decompose
from minipd.framework.meta import Meta
from tests.dist.simulated import Named, check_rule, global_index_noise, join

R, P = Replicate(), Partial()
MESHES = ["x=2", "x=4", "x=2,y=2", "x=2,y=3"]
SIZES = (0, 1, 2, 3, 5, 6, 7, 8)


def shape(rng, ndim):
    return tuple(int(SIZES[i]) for i in rng.integers(len(SIZES), size=ndim))


def floats(rng, shape):
    return np.asarray(rng.integers(-5, 6, shape), np.float64)


def embedding(x, weight, *, window=None):
    start = window[1] if window else 0
    mine = (x >= start) & (x < start + len(weight))
    rows = weight[np.where(mine, x - start, 0)] if len(weight) else np.zeros((*x.shape, weight.shape[1]))
    return rows * mine[..., None]


def embedding_grad(ids, g, like, *, window=None):
    out, start = np.zeros(like.shape), window[1] if window else 0
    for i, row in zip(ids.ravel(), g.reshape(ids.size, like.shape[1]), strict=False):
        if start <= i < start + like.shape[0]:
            out[i - start] += row
    return out


def take_along_axis(x, indices, *, axis, window=None):
    """By hand, so that a shard without rows, and positions that belong to others, give zero."""
    found, start = np.zeros(indices.shape), window[1] if window else 0
    for at in np.ndindex(*indices.shape):
        row = int(indices[at]) - start
        if 0 <= row < x.shape[axis]:
            found[at] = x[at[:axis] + (row,) + at[axis + 1:]]
    return found


def take_along_axis_grad(g, indices, like, *, axis, window=None):
    out, start = np.zeros(like.shape), window[1] if window else 0
    for at in np.ndindex(*indices.shape):
        row = int(indices[at]) - start
        if 0 <= row < like.shape[axis]:
            out[at[:axis] + (row,) + at[axis + 1:]] += g[at]
    return out


@pytest.mark.parametrize("mesh", MESHES)
def test_embedding_and_its_gradient(mesh):
    rng, mesh = np.random.default_rng(13), parse_mesh(mesh)
    for _ in range(60):
        rows, width = int(rng.integers(1, 11)), int(SIZES[rng.integers(len(SIZES))])
        ids = rng.integers(0, rows, shape(rng, int(rng.integers(3))))
        check_rule("embedding", (ids, floats(rng, (rows, width))), {}, embedding, mesh, rng)
        g = floats(rng, (*ids.shape, width))
        check_rule("embedding_grad", (ids, g, floats(rng, (rows, width))), {}, embedding_grad, mesh, rng, (2,))


@pytest.mark.parametrize("mesh", MESHES)
def test_take_along_axis_and_its_gradient(mesh):
    rng, mesh = np.random.default_rng(14), parse_mesh(mesh)
    for _ in range(40):
        ndim = int(rng.integers(1, 4))
        axis = int(rng.integers(ndim))
        table = [int(d) for d in rng.integers(1, 7, size=ndim)]
        at = [d if rng.random() < 0.7 else int(rng.integers(1, d + 1)) for d in table]
        at[axis] = int(rng.integers(7))
        indices = rng.integers(0, table[axis], at)
        x, g = floats(rng, table), floats(rng, at)
        check_rule("take_along_axis", (x, indices), {"axis": axis}, take_along_axis, mesh, rng)
        check_rule("take_along_axis_grad", (g, indices, x), {"axis": axis}, take_along_axis_grad, mesh, rng, (2,))


def test_e1_a_vocabulary_split_unevenly_tells_each_rank_its_first_row():
    """10 rows over 4 ranks: 3, 3, 3, 1."""
    mesh = parse_mesh("tp=4")
    got = infer(Named("embedding"), (np.zeros((2, 2), int), np.zeros((10, 6))), ((R,), (Shard(0),)), {}, mesh)
    assert got.outputs == ((P,),)
    assert [got.attributes({}, mesh, rank)["window"] for rank in range(4)] == [(10, 0), (10, 3), (10, 6), (10, 9)]


def test_a_table_that_is_whole_has_no_window():
    """So that a number outside of it is an error; an axis of one rank splits nothing."""
    ids, table = np.zeros((4, 8), int), np.zeros((10, 6))
    for text, placed in (("dp=2", [Shard(1)]), ("dp=2,tp=1", [R, Shard(0)])):
        mesh = parse_mesh(text)
        got = infer(Named("embedding"), (ids, table), ((R,) * mesh.ndim, placed), {}, mesh)
        assert got.attributes({}, mesh, 1) == {}


def test_the_gradient_of_a_table_is_placed_like_the_table():
    mesh = parse_mesh("dp=2,tp=2")
    ids, g, table = np.zeros((4, 8), int), np.zeros((4, 8, 6)), np.zeros((10, 6))
    got = infer(Named("embedding_grad"), (ids, g, table), ((Shard(0), R), (Shard(0), R), (R, Shard(0))), {}, mesh)
    assert got.inputs == ((Shard(0), R), (Shard(0), R), (R, Shard(0)))
    assert got.outputs == ((P, Shard(0)),)


# -------------------------------------------------------------------------------------------- softmax and loss
def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True, initial=0))
    return e / e.sum(axis, keepdims=True)


def cross_entropy(logits, label, *, ignore_index, axis):
    p = softmax(logits, axis)
    picked = take_along_axis(p, np.where(label == ignore_index, 0, label), axis=axis)
    return p, np.where(label == ignore_index, 0.0, -np.log(np.where(picked == 0, 1, picked)))


def cross_entropy_grad(label, softmax, loss_grad, *, ignore_index, axis, window=None):
    classes = (window[1] if window else 0) + np.arange(softmax.shape[axis])
    classes = classes.reshape([-1 if i == axis else 1 for i in range(softmax.ndim)])
    return (softmax - (classes == label)) * loss_grad * (label != ignore_index)


@pytest.mark.parametrize("mesh", MESHES)
def test_losses(mesh):
    rng, mesh = np.random.default_rng(15), parse_mesh(mesh)
    decomposed = 0
    for _ in range(80):
        ndim = int(rng.integers(1, 4))
        axis = int(rng.integers(ndim))
        logits = floats(rng, [int(d) for d in rng.integers(1, 6, size=ndim)])
        one = tuple(1 if i == axis else d for i, d in enumerate(logits.shape))
        label = np.where(rng.random(one) < 0.2, -100, rng.integers(0, logits.shape[axis], one))
        attrs = {"ignore_index": -100, "axis": axis}
        check_rule("softmax", (logits,), {"axis": axis}, lambda x, *, axis: softmax(x, axis), mesh, rng)
        got = check_rule("cross_entropy_with_softmax", (logits, label), attrs, cross_entropy, mesh, rng)
        decomposed += isinstance(got, Decompose)
        check_rule("cross_entropy_with_softmax_grad", (label, floats(rng, logits.shape), floats(rng, one)), attrs,
                   cross_entropy_grad, mesh, rng)
    assert decomposed > 0


def test_e2_split_classes_decompose_and_their_gradient_stays_split():
    mesh = parse_mesh("dp=2,tp=4")
    logits, label, grad = np.zeros((6, 10)), np.zeros((6, 1), int), np.zeros((6, 1))
    assert infer(Named("softmax"), (logits,), ((R, Shard(1)),), {"axis": 1}, mesh).inputs == ((R, R),)
    assert infer(Named("softmax"), (logits,), ((Shard(0), R),), {"axis": 1}, mesh).outputs == ((Shard(0), R),)
    placed = ((Shard(0), Shard(1)), (Shard(0), R))
    assert infer(Named("cross_entropy_with_softmax"), (logits, label), placed, {"axis": 1}, mesh) is DECOMPOSE
    crossed = (Shard(0), Shard(1)), (R, Shard(0))       # labels split by the axis of the classes are gathered first
    assert infer(Named("cross_entropy_with_softmax"), (logits, label), crossed, {"axis": 1}, mesh).inputs == placed
    got = infer(Named("cross_entropy_with_softmax_grad"), (label, logits, grad), ((Shard(0), R), (Shard(0), Shard(1)),
                                                                                 (Shard(0), R)), {"axis": 1}, mesh)
    assert got.inputs == ((Shard(0), R), (Shard(0), Shard(1)), (Shard(0), R)) and got.outputs == ((Shard(0), Shard(1)),)
    assert [got.attributes({"axis": 1}, mesh, rank)["window"] for rank in range(8)] == [
        (10, 0), (10, 3), (10, 6), (10, 9)] * 2



# ---------------------------------------------------------------------------------------------------- creation
@pytest.mark.parametrize("mesh", MESHES)
def test_created_tensors_are_the_same_however_they_are_placed(mesh):
    """E5: parameters under any mesh are the slices of the single-rank ones."""
    rng, mesh = np.random.default_rng(16), parse_mesh(mesh)

    def uniform(key, *, shape, window=None):
        return np.array(global_index_noise(shape, window))

    key = np.array([1, 2])
    for _ in range(40):
        s = shape(rng, int(rng.integers(1, 4)))
        choices = [R] + [Shard(d) for d in range(len(s))]
        wanted = tuple(choices[rng.integers(len(choices))] for _ in mesh.sizes)
        got = infer(Named("uniform"), (key,), ((R,) * mesh.ndim,), {"shape": s}, mesh, wanted)
        assert got.outputs == (wanted,) and got.inputs == ((R,) * mesh.ndim,)
        pieces = [uniform(key, **got.attributes({"shape": s}, mesh, rank)) for rank in mesh.process_ids]
        np.testing.assert_array_equal(join(pieces, mesh, wanted), uniform(key, shape=s))
        full = infer(Named("full"), (), (), {"shape": s, "value": 3.0}, mesh, wanted)
        pieces = [np.full(**{"shape" if k == "shape" else "fill_value": v for k, v in full.attributes(
            {"shape": s, "value": 3.0}, mesh, rank).items()}) for rank in mesh.process_ids]
        assert join(pieces, mesh, wanted).shape == s


def test_creation_defaults_to_replicate_and_refuses_partial():
    mesh = parse_mesh("x=2")
    for name, operands, attrs in (("full", (), {"shape": (4,)}), ("gaussian", (np.zeros(2),), {"shape": (4,)}),
                                  ("arange", (), {"start": 0, "stop": 4, "step": 1})):
        got = infer(Named(name), operands, ((R,),) * len(operands), attrs, mesh)
        assert got.outputs == ((R,),) and got.attributes(attrs, mesh, 1) == attrs
    with pytest.raises(ValueError, match="expected Shard or Replicate for a tensor that is being created"):
        infer(Named("full"), (), (), {"shape": (4,)}, mesh, (P,))
    with pytest.raises(ValueError, match=r"expected Shard\(dim=1\) to name one of its dimensions"):
        infer(Named("full"), (), (), {"shape": (4,)}, mesh, (Shard(1),))


def test_full_like_follows_and_reads_partial_as_replicate():
    mesh = parse_mesh("x=2,y=2")
    got = infer(Named("full_like"), (np.zeros((4, 4)),), ((P, Shard(1)),), {"value": 0.0}, mesh)
    assert got.outputs == ((R, Shard(1)),)


# ---------------------------------------------------------------------------------- optimizer, reshard, match
@pytest.mark.parametrize("mesh", MESHES)
def test_optimizer_steps_follow_the_parameter(mesh):
    rng, mesh = np.random.default_rng(17), parse_mesh(mesh)
    for _ in range(40):
        s = shape(rng, 2)
        tensors = [floats(rng, s) for _ in range(4)]
        choices = [R, Shard(0), Shard(1)]
        placed = [tuple(choices[rng.integers(3)] for _ in mesh.sizes)] + [
            tuple((choices + [P])[rng.integers(4)] for _ in mesh.sizes) for _ in range(3)]
        scalar, zero, go = np.array(0.5), (R,) * mesh.ndim, np.array(False)
        got = check_rule("sgd", (*tensors[:2], scalar, go), {}, lambda p, g, lr, skip: p - lr * g, mesh, rng,
                         placements=[*placed[:2], zero, zero])
        assert got.inputs == (placed[0], placed[0], zero, zero) and got.outputs == (placed[0],)
        got = check_rule("adamw", (*tensors, scalar, scalar, go), {},
                         lambda p, g, m, v, t, lr, skip: (p - lr * g, m + g, v + g * g), mesh, rng,
                         placements=[*placed, zero, zero, zero])
        assert got.inputs == (placed[0],) * 4 + (zero, zero, zero) and got.outputs == (placed[0],) * 3


def test_reshard_and_match_only_ask_for_placements():
    mesh, x = parse_mesh("x=2,y=2"), Meta((4, 4), np.dtype("f4"))
    got = infer(Named("reshard"), (x,), ((P, R),), {"mesh": mesh, "placements": [Shard(-1), R]}, mesh)
    assert got.inputs == got.outputs == ((Shard(1), R),)
    got = infer(Named("match"), (x, x), ((P, P), (P, Shard(0))), {}, mesh)
    assert got.inputs == ((R, Shard(0)), (P, Shard(0))) and got.outputs == ((R, Shard(0)),)
    with pytest.raises(ValueError, match="expected the mesh of the tensor"):
        infer(Named("reshard"), (x,), ((P, R),), {"mesh": parse_mesh("x=4"), "placements": [R]}, mesh)
