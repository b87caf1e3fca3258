"""SPMD inference against Paddle 3.3.1's own answers (tests/golden/spmd.jsonl.xz), forward and backward.

A row agrees if operands and results end up exactly where Paddle puts them (the order of two mesh axes on one dimension
aside, which is outer first here), or if Paddle refuses the placements, and so does minipd with FLAGS_refuse_as_paddle.
All others are in one of two tables: what cannot be compared, and what differs, each with its reason and its number of
rows.
"""

import collections

import pytest

from minipd.framework.flags import set_flags
from tests.dist.golden_spmd import CALLS, answers, call, flat, golden_rows, is_absent, is_backward, same


def splits(row, operand, dim):
    """Whether an operand is given split over a dimension."""
    x = flat(row["inputs"])[operand]
    return any(p.replace("(", "").replace(")", "") == f"S{dim % len(x['shape'])}" for p in x["placements"])


def partial(row):
    return any(p.startswith("P") for x in flat(row["inputs"]) for p in x["placements"] or ())


def error_with(*parts):
    return lambda row: any(part in row.get("error", "") for part in parts)


#: Paddle's two sources contradict each other: what of which one is left
OTHER_SOURCE = {
    ("embedding", "pir_program"): lambda row: splits(row, 1, 0),        # the factory has vocabulary parallelism
    ("cross_entropy_with_softmax", "pir_program"): lambda row: splits(row, 0, -1),      # and keeps split classes
    ("gather", "pir_program"): lambda row: True,                        # there the axis is a tensor: all is gathered
    ("prod", "pir_program"): lambda row: True,                          # as well
    ("multiply", "factory"): partial,                                   # Partial x Replicate: PIR resolves it
    ("assign", "factory"): partial,                                     # there PIR lets it pass
}
#: why a row cannot be compared -> (whether that is so of a row, number of rows)
NOT_COMPARABLE = {
    "Paddle crashed": (error_with("CRASH"), 28),
    "the factory has no rule of that name": (error_with("spmd_rule_map_"), 50),
    "Paddle does not take the dtype": (error_with("InvalidType"), 41),
    "Paddle refuses an argument: soft labels, or an axis that is not the last": (
        error_with("Expected soft_label", "Expected axis"), 16),
    "minipd does not have the operator": (lambda row: row["op"] not in CALLS, 11),
    "minipd's operator takes the angles, and does not reckon them": (
        lambda row: row["op"] == "fused_rotary_position_embedding" and is_absent(flat(row["inputs"])[3]), 8),
    "Paddle's operation carries no placements": (
        lambda row: "error" not in row and answers(row, len(row["mesh_shape"]))[0] is None, 8),
    "Paddle's other source says something else, and is the one to agree with": (
        lambda row: OTHER_SOURCE.get((row["op"], row["source"]), lambda row: False)(row), 32),
}
#: rows that agree; 2,133 of 2,197 that can be compared, 97.1 %
AGREE = {"factory": 1316, "pir_program": 658, "backward": 69, "refused": 90}
#: operator -> (number of rows that differ, reason)
DIFFERENCES = {
    "swiglu": (6, "of one operand: Paddle leaves split what it halves, and a rank's shard has other halves"),
    "isnan (no rule?)": (4, "Paddle has no rule for it, and gathers; here each rank asks of what it has"),
    "expand": (4, "as isnan, in programs: here what does not grow stays split"),
    "tril_triu": (2, "as isnan, in programs: here what is no matrix stays split"),
    "add": (3, "two Partials are added rank by rank, and reduced once; Paddle reduces both"),
    "subtract": (2, "as add"),
    "concat": (1, "Paddle loses track of a Partial that passes"),
    "logsumexp": (7, "Paddle adds up the parts' logarithms; here the maxima and the sums are combined"),
    "p_norm": (2, "Paddle adds up the parts' norms; here their powers are"),
    "scatter": (13, "Paddle adds up copies of x, and rows that several ranks wrote; here x stays where it is split"),
    "scatter_nd_add": (2, "x counts once; Paddle adds every rank's copy"),
    "gather": (5, "Paddle leaves the index split by an axis that splits the result elsewhere: ranks would lack rows"),
    "where": (3, "Paddle shards a dimension of size 1"),
    "fused_dropout_add": (3, "Paddle adds shards of one dimension to shards of another"),
    "conv2d": (2, "Paddle leaves a spatial dimension split, whose edges need their neighbours"),
    "reshape": (1, "backwards: 4 over 2 x 3 ranks are other cuts than 24"),
    "batch_norm": (1, "weights and running statistics are split as the channels are; Paddle gathers two of the four"),
    "group_norm": (1, "whole groups stay on their ranks"),
    "cross_entropy_with_softmax": (1, "soft labels are a composition; the loss stays Partial"),
    "embedding": (1, "a padding row beside a split vocabulary: Paddle refuses it, here it works"),
}


def not_comparable(row):
    """The first reason why a row cannot be compared, or None."""
    return next((why for why, (test, _) in NOT_COMPARABLE.items() if test(row)), None)


def agrees(row):
    """Whether minipd, told to refuse what Paddle refuses, does what Paddle does."""
    try:
        found = call(row)
    except ValueError as error:
        assert "Paddle refuses" in str(error)
        return "error" in row
    return "error" not in row and all(same(ours, theirs, row["source"]) for ours, theirs in
                                      zip(found, answers(row, len(row["mesh_shape"])), strict=True))


@pytest.fixture
def refusing():
    set_flags({"FLAGS_refuse_as_paddle": True})
    yield
    set_flags({"FLAGS_refuse_as_paddle": False})


def test_at_least_97_in_100_agree_and_every_other_has_its_reason(refusing):
    left_out, agree, differ = collections.Counter(), collections.Counter(), collections.Counter()
    for row in golden_rows():
        why = not_comparable(row)
        if why:
            left_out[why] += 1
        elif agrees(row):
            agree["backward" if is_backward(row) else "refused" if "error" in row else row["source"]] += 1
        else:
            differ[row["op"]] += 1
    assert {why: n for why, (_, n) in NOT_COMPARABLE.items()} == left_out
    assert {op: n for op, (n, _) in DIFFERENCES.items()} == differ
    assert agree == AGREE
    assert agree.total() >= 0.97 * (agree.total() + differ.total())


def test_what_paddle_refuses_runs_without_the_flag():
    for row in golden_rows():
        if "error" in row and not_comparable(row) is None:
            call(row)
