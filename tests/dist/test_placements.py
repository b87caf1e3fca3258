"""Placements: Paddle's names and texts, interned objects, checks that teach."""

import copy
import pickle

import pytest

from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, ReduceType, Replicate, Shard, check_placements

ALL = [Shard(0), Shard(1), Replicate(), Partial(), Partial(ReduceType.kRedMax), Partial("avg")]


def test_texts_are_paddles():
    assert [repr(p) for p in ALL] == ["Shard(dim=0)", "Shard(dim=1)", "Replicate()", "Partial(reduce_type=SUM)",
                                      "Partial(reduce_type=MAX)", "Partial(reduce_type=AVG)"]


def test_paddles_questions():
    assert [(p.is_shard(), p.is_replicated(), p.is_partial()) for p in (Shard(1), Replicate(), Partial())] == [
        (True, False, False), (False, True, False), (False, False, True)]
    assert Shard(1).is_shard(1) and not Shard(1).is_shard(0) and Shard(1).get_dim() == 1
    assert Partial().reduce_type() is ReduceType.kRedSum and Partial("min").reduce_type() == 2
    assert [t.value for t in ReduceType] == list(range(7))


def test_equal_placements_are_one_object():
    for i, p in enumerate(ALL):
        for q in (copy.copy(p), copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
            assert q is p
        for j, q in enumerate(ALL):
            assert (p == q) == (i == j) and (hash(p) == hash(q)) == (i == j)
    assert Partial("max") is Partial(ReduceType.kRedMax) and Shard(True + 0) is Shard(1)


def test_equal_parts_reduce_to_themselves():
    assert [p.op for p in map(Partial, ReduceType) if p.idempotent] == ["max", "min", "avg", "any", "all"]


def test_checked_placements_count_dimensions_from_the_front():
    mesh = parse_mesh("dp=2,tp=2")
    assert check_placements([Shard(-1), Partial()], mesh, 3) == (Shard(2), Partial())
    assert check_placements((Replicate(), Replicate()), mesh, 0) == (Replicate(), Replicate())


@pytest.mark.parametrize("placements, ndim, error, message", [
    ([Shard(0)], 2, ValueError, r"weight: expected 2 placements, one for each axis of the mesh dp=2,tp=2, got 1: "
                                r"\[Shard\(dim=0\)\]; use Replicate\(\) for an axis that does not matter"),
    ([Shard(2), Replicate()], 2, ValueError, r"weight: expected Shard\(dim=2\) to name one of its dimensions, got a "
                                             r"tensor that is 2-D, with dimensions 0 to 1"),
    ([Shard(0), Replicate()], 0, ValueError, r"a tensor that is 0-D, it has no dimension to shard"),
    ([0, Replicate()], 2, TypeError, r"weight: expected placements Shard\(dim\), Replicate\(\) or Partial\(\), got 0"),
])
def test_wrong_placements_say_what_to_do(placements, ndim, error, message):
    with pytest.raises(error, match=message):
        check_placements(placements, parse_mesh("dp=2,tp=2"), ndim, "weight")


def test_an_unknown_reduction_names_those_there_are():
    with pytest.raises(ValueError, match="expected a ReduceType or one of sum, max, min, prod, avg, any, all, got"):
        Partial("mean")
    with pytest.raises(TypeError):
        Shard("0")
