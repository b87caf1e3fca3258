"""Placements: Paddle's names and texts, interned objects, checks that teach."""

import copy
import itertools
import pickle

import numpy as np
import pytest

from minipd.dist.dialect import DistTensorType, placement_text
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import (
    Partial,
    ReduceType,
    Replicate,
    Shard,
    canonical,
    check_placements,
    splitting_order,
)
from minipd.ir.parser import Parser

ALL = [Shard(0), Shard(1), Replicate(), Partial(), Partial(ReduceType.kRedMax), Partial("avg"),
       Shard(0, shard_order=1), Shard(0, split_factor=2), Shard(0, shard_order=1, split_factor=2)]


def test_texts_are_paddles():
    assert [repr(p) for p in ALL] == ["Shard(dim=0)", "Shard(dim=1)", "Replicate()", "Partial(reduce_type=SUM)",
                                      "Partial(reduce_type=MAX)", "Partial(reduce_type=AVG)",
                                      "Shard(dim=0, shard_order=1)", "Shard(dim=0, split_factor=2)",
                                      "Shard(dim=0, shard_order=1, split_factor=2)"]
    assert repr(Partial("prod")) == "Partial(reduce_type=PRODUCT)" and repr(Shard(-1)) == "Shard(dim=-1)"


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
    (None, 2, TypeError, r"weight: expected a list of placements, one for each axis of the mesh dp=2,tp=2, got None"),
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


def test_orders_and_factors_as_paddle_has_them():
    """Asked of Paddle 3.3.1: no order is order 0, no factor is factor 1, and an order counts for equality."""
    assert (Shard(0).get_co_shard_order(), Shard(0).get_split_factor()) == (0, 1)
    both = Shard(dim=2, shard_order=1, split_factor=3)
    assert (both.get_dim(), both.get_co_shard_order(), both.get_split_factor()) == (2, 1, 3) and both.is_shard(2)
    assert Shard(0) == Shard(0, shard_order=0) == Shard(0, split_factor=1) != Shard(0, shard_order=1)
    assert both.with_(dim=0) is Shard(0, shard_order=1, split_factor=3)


@pytest.mark.parametrize("make, error, message", [
    (lambda: Shard(0, shard_order=-1), ValueError, r"expected a shard_order of 0 or more \(0 splits first\), got -1"),
    (lambda: Shard(0, split_factor=0), ValueError, "expected a split_factor of 1 or more .* got 0"),
    (lambda: Shard(0, split_factor=1.5), TypeError, "float"),
    (lambda: Shard(0, 1), TypeError, "positional"),
    (lambda: Shard(0).set_split_factor(3), TypeError, r"make another one, Shard\(0, split_factor=3\)"),
])
def test_wrong_orders_and_factors(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("p", ALL)
def test_the_text_of_programs_is_read_back(p):
    kind = DistTensorType((4, 8), np.dtype("float32"), parse_mesh("x=2"), (p,))
    text = kind.text(exact=True)
    assert Parser(text).type() == kind and text.endswith(f", {placement_text(p)}>")
    assert placement_text(Shard(0, shard_order=1, split_factor=2)) == "S(0, order=1, factor=2)"


def test_equal_layouts_have_one_canonical_form():
    """Every assignment of orders to three axes that split one dimension, against sorting by them."""
    seen = {}
    for orders in itertools.product(range(4), repeat=3):
        placed = tuple(Shard(1, shard_order=o) for o in orders)
        layout = tuple(sorted(range(3), key=lambda axis, orders=orders: orders[axis]))
        found = canonical(placed)
        assert tuple(splitting_order(found)) == tuple(splitting_order(placed)) == layout
        assert seen.setdefault(layout, found) == found == canonical(found)
    assert len(seen) == 6 == len(set(seen.values())) and seen[0, 1, 2] == (Shard(1),) * 3
    mixed = (Shard(0, shard_order=7), Shard(1, shard_order=2), Replicate(), Shard(1))
    assert canonical(mixed) == (Shard(0), Shard(1, shard_order=1), Replicate(), Shard(1))
