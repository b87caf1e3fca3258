"""Which Partial may go through an operator without being added up first."""

import numpy as np

import minipd as paddle
from minipd.dist.api import dtensor_from_local
from minipd.dist.dialect import placement_text
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.simulate import simulate
from minipd.dist.spmd import infer
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from tools.course.checking import check

F = paddle.nn.functional
R, P, S, MAX = Replicate(), Partial(), Shard, Partial("max")
X = np.zeros((4, 6))


def text(inputs, result):
    """`P, R -> P`; with several mesh axes `[S(0), P]` for one operand."""
    words = [", ".join(map(placement_text, p)) for p in (*inputs, result)]
    *ins, out = [f"[{word}]" if "," in word else word for word in words]
    return f"{', '.join(ins)} -> {out}"


def expect(name, placed, inputs, result, operands=None, mesh="tp=2", **attrs):
    """What an operator asks of its operands and says of its result."""
    def many(p):
        return p if isinstance(p, tuple) else (p,)
    given = tuple(map(many, placed))
    operands = operands or (X,) * len(placed)
    on = text(given, (R,)).partition(" ->")[0]
    how = "".join(f", {key}={value}" for key, value in attrs.items())
    check(text(map(many, inputs), many(result)), lambda: answer(name, operands, given, mesh, attrs),
          f"{name}({on}{how}): the placements that the operands need -> that of the result")


def answer(name, operands, placed, mesh, attrs):
    got = infer(ROWS[name], operands, placed, attrs, parse_mesh(mesh))
    return text(got.inputs, got.outputs[0])


def test_a_linear_operator_lets_it_pass():
    expect("divide", [P, R], [P, R], P, operands=(X, np.zeros(())))
    expect("transpose", [P], [P], P, perm=(1, 0))


def test_a_nonlinear_operator_does_not():
    expect("relu", [P], [R], R)


def test_an_offset_is_not_linear():
    expect("scale", [P], [R], R, scale=1.0, bias=10.0)


def test_two_parts_of_sums_add_up_rank_by_rank():
    expect("add", [P, P], [P, P], P)


def test_a_part_and_a_whole_do_not():
    """10 + 35, and 10 to be added: if both ranks add it, it is there twice."""
    expect("add", [P, R], [R, R], R)
    expect("add", [R, P], [R, R], R)


def test_a_product_of_two_tensors_adds_up_first():
    expect("multiply", [P, P], [R, R], R)


def test_a_product_with_a_number_passes():
    expect("multiply", [P, R], [P, R], P, operands=(X, np.zeros(())))


def test_nothing_partial_nothing_passes():
    expect("add", [R, R], [R, R], R)
    expect("relu", [R], [R], R)


def test_a_maximum_passes_what_only_moves_data():
    expect("transpose", [MAX], [MAX], MAX, perm=(1, 0))


def test_a_maximum_does_not_pass_what_computes():
    """max(3, 5) * -1 is -5, but max(-3, -5) is -3."""
    expect("scale", [MAX], [R], R, scale=-1.0)
    expect("add", [MAX, MAX], [R, R], R)


def test_two_kinds_do_not_mix():
    expect("concat", [P, MAX], [R, R], R, axis=0)


def test_one_kind_of_several_passes_together():
    expect("concat", [P, P], [P, P], P, axis=0)
    expect("concat", [P, R], [R, R], R, axis=0)


def test_a_sum_of_many_keeps_the_whole_ones_on_one_rank():
    """`add_n` has `fill`: replicated operands become Partial, for free, so that one reduction serves all."""
    expect("add_n", [P, R, P], [P, P, P], P)
    expect("add_n", [R, R], [R, R], R)


def test_a_single_part_among_whole_ones_is_added_up_first():
    """One reduction now or one later: nothing is saved by waiting, and what waits may grow."""
    expect("add_n", [P, R, R], [R, R, R], R)


def test_an_operand_that_lends_only_its_shape_does_not_count():
    """`reduce_as(x, like)` reads the shape of `like` alone, which moves nowhere: it may stay Partial, or not."""
    expect("reduce_as", [P, P], [P, P], P)
    expect("reduce_as", [P, R], [P, R], P)
    expect("full_like", [P], [P], R, value=0.0)


def test_every_axis_decides_for_itself():
    expect("relu", [(S(0), P)], [(S(0), R)], (S(0), R), mesh="dp=2,tp=2")
    expect("add", [(P, P), (P, R)], [(P, R), (P, R)], (P, R), mesh="dp=2,tp=2")


def on_two_ranks(function, *pairs):
    """`function` of tensors of which two ranks hold these parts."""
    def run(mesh):
        parts = [dtensor_from_local(np.array(pair[current().rank], "float32"), mesh, [P]) for pair in pairs]
        return function(*parts).tolist()
    return simulate("tp=2", run)[0]


def test_values():
    check(55.0, lambda: on_two_ranks(lambda x: x + 10, (10, 35)), "parts 10 | 35, plus 10")
    check(90.0, lambda: on_two_ranks(lambda x: x * 2, (10, 35)), "parts 10 | 35, times 2")
    check([0.0, 1.0], lambda: on_two_ranks(F.relu, ([-3, 2], [2, -1])), "relu of the parts [-3, 2] | [2, -1]")
    check(21.0, lambda: on_two_ranks(lambda x, y: x * y, (1, 2), (3, 4)), "parts 1 | 2 times parts 3 | 4")
    check(10.0, lambda: on_two_ranks(lambda x, y: x + y, (1, 2), (3, 4)), "parts 1 | 2 plus parts 3 | 4")
    check([1.0, 4.0], lambda: on_two_ranks(paddle.square, ([-3, 1], [2, 1])), "square of the parts [-3, 1] | [2, 1]")
