"""Pictures of meshes, sharded tensors and reshards: who holds what, true to size; what is sent."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minipd as paddle
from minipd import viz
from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard, canonical
from minipd.dist.reshard.cost import of_step
from minipd.dist.reshard.plan import plan
from minipd.dist.reshard.steps import Step
from minipd.dist.sharding import sharding_text
from minipd.framework.dim import symbol
from minipd.viz.dist.cut import SIDE, Cut
from minipd.viz.dist.mesh import arrange
from minipd.viz.dist.notation import parse_sharding
from minipd.viz.dist.reshard import flows, sent, told

S, R, P = Shard, Replicate, Partial
SVG = "{http://www.w3.org/2000/svg}"


def texts(picture):
    return [e.text for e in ElementTree.fromstring(picture.svg).iter(f"{SVG}text")]


def rects(picture, kind):
    return [e for e in ElementTree.fromstring(picture.svg).iter(f"{SVG}rect") if kind in e.get("class").split()]


# ---------------------------------------------------------------------------------------------------------- mesh
def test_ranks_stand_in_their_grid():
    grid = arrange(parse_mesh("dp=2,tp=3"), 50, 30).corners
    assert [grid[r][1] for r in range(3)] == [0, 0, 0] and grid[3][1] > 30
    assert grid[0][0] < grid[1][0] < grid[2][0] and grid[3][0] == grid[0][0]


@pytest.mark.parametrize("text", ["a=1", "a=5", "a=2,b=3", "a=2,b=2,c=2", "a=2,b=2,c=2,d=3", "a=2,b=2,c=1,d=2,e=2"])
def test_no_two_ranks_meet(text):
    mesh = parse_mesh(text)
    grid = arrange(mesh, 50, 30)
    corners = list(grid.corners.values())
    assert len(corners) == mesh.size
    for i, (x, y) in enumerate(corners):
        assert 0 <= x <= grid.width - 50 and 0 <= y <= grid.height - 30
        assert all(abs(x - x2) >= 50 or abs(y - y2) >= 30 for x2, y2 in corners[:i])


def test_a_mesh_tells_who_talks_to_whom():
    words = texts(viz.mesh(parse_mesh("dp=2,tp=2")))
    assert "dp talks among   0 2   1 3" in words and "tp talks among   0 1   2 3" in words
    assert "tp: nobody to talk to" in texts(viz.mesh(parse_mesh("tp=1")))


def test_another_mesh_is_another_picture():
    pictures = {viz.mesh(m).svg for m in (parse_mesh("dp=2,tp=2"), parse_mesh("tp=2,dp=2"), parse_mesh("dp=4"),
                                          ProcessMesh([[3, 2], [1, 0]], ["dp", "tp"]))}
    assert len(pictures) == 4


# -------------------------------------------------------------------------------------------------------- tensor
def test_uneven_pieces_are_true_to_size():
    picture = viz.sharding((5, 8), parse_mesh("tp=4"), [S(0)])
    heights = [float(r.get("height")) for kind in ("p0", "p1", "p2") for r in rects(picture, kind)[:1]]
    assert heights[0] == heights[1] == pytest.approx(2 * heights[2], abs=0.2)
    assert not rects(picture, "p3")                     # the fourth rank holds nothing
    words = texts(picture)
    assert {"[2, 8]", "[1, 8]", "nothing", "2 + 2 + 1 + 0", "f32[5_tp, 8]"} <= set(words)


def test_who_holds_the_same_has_the_same_colour():
    picture = viz.sharding((4, 6), parse_mesh("dp=2,tp=2"), [R(), S(1)])
    tips = [[t.text for t in r.iter(f"{SVG}title")] for r in rects(picture, "p0")]
    assert tips[0] == ["ranks 0 2: [4, 3]"]
    assert len(rects(picture, "p0")) == 3 and len(rects(picture, "p1")) == 3        # the whole, and two ranks each


def test_parts_of_a_sum_are_told_apart():
    words = texts(viz.sharding((4,), parse_mesh("dp=2,tp=2"), [P(), R()]))
    assert words.count("part 1 of 2") == 2 and words.count("part 2 of 2") == 2 and "f32[4]{P_dp}" in words
    assert "part 3 of 4" in texts(viz.sharding((4,), parse_mesh("dp=2,tp=2"), [P(), P()]))
    assert "part 1 of 2 (max)" in texts(viz.sharding((4,), parse_mesh("dp=2"), [P("max")]))


def test_another_order_and_parts_within():
    square = parse_mesh("dp=2,tp=2")
    swapped = viz.sharding((8, 4), square, [S(0, shard_order=1), S(0)])
    tips = [r.find(f"{SVG}title").text for kind in ("p0", "p1", "p2", "p3") for r in rects(swapped, kind)[:1]]
    assert tips == ["rank 0: [2, 4]", "rank 2: [2, 4]", "rank 1: [2, 4]", "rank 3: [2, 4]"]   # tp has split it first
    assert {"f32[8_tp_dp, 4]", "over tp, then dp"} <= set(texts(swapped))
    fused = viz.sharding((12, 4), parse_mesh("tp=2"), [S(0, split_factor=3)])
    assert len(rects(fused, "p0")) == len(rects(fused, "p1")) == 6              # three blocks of each, twice
    assert {"f32[12_tp(3), 4]", "over tp (each of 3 parts)", "[6, 4]"} <= set(texts(fused))
    assert viz.sharding((symbol("B"), 4), parse_mesh("tp=2"), [S(0, split_factor=3)])


@given(st.data())
def test_the_pieces_cover_the_tensor(data):
    mesh = parse_mesh(data.draw(st.sampled_from(["a=3", "a=2,b=2", "a=2,b=3,c=2"])))
    shape = tuple(data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=4)))
    kinds = st.sampled_from([R(), P(), *map(S, range(len(shape)))])
    cut = Cut.of(shape, mesh, [data.draw(kinds) for _ in mesh.names], "float32")
    width, height = cut.extent()
    area = 0.0
    for window in cut.pieces:
        if 0 in window[0]:
            continue
        level, x, y, w, h = cut.box(window, width, height)
        assert 0 <= level < len(cut.levels) and x >= 0 and y >= 0
        assert x + w <= width + 1e-6 and y + h <= height + 1e-6
        area += w * h * np.prod([window[0][d] / shape[d] for d in cut.planes])
    assert area == pytest.approx(width * height)
    assert max(width, height) <= SIDE
    viz.sharding(shape, mesh, cut.placements)


def test_small_and_large_and_symbolic_tensors():
    mesh = parse_mesh("tp=2")
    assert "[]" in texts(viz.sharding((), mesh, [R()]))
    assert "nothing" in texts(viz.sharding((0, 3), mesh, [S(0)]))
    assert "[B/2, 8]" in texts(viz.sharding((symbol("B"), 8), mesh, [S(0)]))
    assert viz.sharding((1 << 20, 2), mesh, [S(1)]).height < 400


def test_placements_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="sharding: expected 1 placements"):
        viz.sharding((4,), parse_mesh("tp=2"), [R(), R()])
    with pytest.raises(TypeError, match="tensor: expected a distributed tensor"):
        viz.tensor(paddle.ones([2]))


def test_values_of_completed_programs_are_drawn():
    from minipd.ir.parser import parse
    value = parse("""{
    (%0) = "pd_op.data" () {name: "x"} : () -> pd_dist.tensor<4x8xf32, mesh([2], [0, 1], "tp"), S(1)>
}
""").global_block().front().result(0)
    assert "x: f32[4, 8_tp]" in texts(viz.tensor(value, "x"))


# ------------------------------------------------------------------------------------------------------- reshard
def test_a_plan_shows_every_state_and_what_is_sent():
    picture = viz.reshard((1024, 128), parse_mesh("dp=2,tp=2"), [P(), S(0)], [S(1), R()])
    words = texts(picture)
    states = [w for w in words if w.startswith("f32[")]
    assert states == ["f32[1024_tp, 128]{P_dp}", "f32[1024_tp, 128_dp]", "f32[1024, 128_dp]"]
    assert [w for w in words if " over " in w] == ["reduce_scatter over dp", "all_gather over tp"]
    assert words.count("each rank sends 128 KiB, 512 KiB in all") == 2


def test_nothing_to_do_and_nothing_sent():
    mesh = parse_mesh("tp=2")
    assert "nothing to do" in texts(viz.reshard((4,), mesh, [R()], [R()]))
    assert "each rank keeps its slice; nothing is sent" in texts(viz.reshard((4,), mesh, [R()], [S(0)]))
    assert "how much is sent depends on the sizes" in texts(viz.reshard((symbol("B"),), mesh, [S(0)], [R()]))


@given(st.data())
def test_bytes_are_those_that_the_plan_reckons_with(data):
    """Where all splits are even, every rank sends what the plan was chosen by."""
    mesh = parse_mesh(data.draw(st.sampled_from(["a=4", "a=2,b=2", "a=2,b=2,c=2"])))
    kinds = st.sampled_from([R(), P(), S(0), S(1)])
    src, dst = (tuple(data.draw(kinds) for _ in mesh.names) for _ in range(2))
    now = src
    for step in plan(src, dst, mesh, 2):
        amounts = sent(step, (64, 64), mesh, now, 4)
        assert set(amounts.values()) == {of_step(step, now, mesh, (64, 64))[1]}
        now = step.applied(now)


def test_bytes_of_uneven_chunks():
    mesh = parse_mesh("tp=4")           # 5 rows of 8 floats: chunks of 2, 2, 1, 0 rows, 64, 64, 32, 0 bytes
    gather = sent(Step(0, S(0), R()), (5, 8), mesh, [S(0)], 4)
    assert gather == {0: 192, 1: 192, 2: 96, 3: 0} and sum(gather.values()) == 3 * 160
    scatter = sent(Step(0, P(), S(0)), (5, 8), mesh, [P()], 4)
    assert scatter == {0: 96, 1: 96, 2: 128, 3: 160}
    # rank 0 holds rows 0, 1 and will hold columns 0, 1: it keeps 2 x 2 of its 2 x 8
    assert sent(Step(0, S(0), S(1)), (5, 8), mesh, [S(0)], 4) == {0: 48, 1: 48, 2: 24, 3: 0}


@given(st.data())
def test_bytes_from_rank_to_rank_add_up(data):
    mesh = parse_mesh(data.draw(st.sampled_from(["a=3", "a=2,b=2", "a=2,b=3"])))
    kinds = st.sampled_from([R(), P(), S(0), S(1)])
    now, goal = (tuple(data.draw(kinds) for _ in mesh.names) for _ in range(2))
    shape = (data.draw(st.integers(1, 7)), data.draw(st.integers(1, 7)))
    for step in plan(now, goal, mesh, 2):
        pairs = flows(step, shape, mesh, now, 4)
        assert {rank: sum(n for (src, _), n in pairs.items() if src == rank) for rank in mesh.process_ids} == \
            sent(step, shape, mesh, now, 4)
        assert all(src != dst and dst in mesh.group(src, step.axis) for src, dst in pairs)
        now = step.applied(now)


def test_a_collective_is_arrows_in_the_colours_of_the_pieces():
    picture = viz.reshard((3, 8), parse_mesh("tp=2"), [S(0)], [R()])
    root = ElementTree.fromstring(picture.svg)
    arrows = {t.text: path.get("class") for path in root.iter(f"{SVG}path") for t in path.iter(f"{SVG}title")}
    assert arrows["rank 0 to rank 1: 64 B"] == "line p0 thick" and arrows["rank 1 to rank 0: 32 B"] == "line p1 thick"
    assert {"64 B", "32 B", "sends 64 B", "sends 32 B"} <= set(texts(picture))
    assert "rank 0 to rank 0: what it keeps" in arrows
    many = viz.reshard((16, 8), parse_mesh("tp=16"), [S(0)], [R()])             # too many for arrows: in their grid
    assert "all_gather over tp" in texts(many) and not [t for t in texts(many) if t and t.startswith("sends ")]


def test_to_another_mesh_it_goes_by_messages():
    first, second = ProcessMesh([0, 1], ["dp"]), ProcessMesh([2, 3, 4], ["dp"])
    picture = viz.reshard((6, 4), first, [S(0)], [S(0)], to=second)
    root = ElementTree.fromstring(picture.svg)
    tips = [t.text for path in root.iter(f"{SVG}path") for t in path.iter(f"{SVG}title")]
    assert tips == ["rank 0 to rank 2: [2, 4] from [0, 0]", "rank 0 to rank 3: [1, 4] from [2, 0]",
                    "rank 1 to rank 3: [1, 4] from [3, 0]", "rank 1 to rank 4: [2, 4] from [4, 0]"]
    assert "4 messages, 96 B in all" in texts(picture)


def test_what_is_partial_crosses_in_parts_or_reduced():
    first, second = ProcessMesh([0, 1], ["tp"]), ProcessMesh([1, 2], ["tp"])
    words = told((4, 6), first, [P()], [P()], to=second).splitlines()
    assert [line.split(":")[0] for line in words] == ["send to the other mesh"]
    assert "2 messages, 192 B in all" in words[0]       # rank i has the part of rank i
    words = told((4, 6), first, [P()], [R()], to=ProcessMesh([4, 5, 6], ["tp"])).splitlines()
    assert [line.split(":")[0] for line in words] == ["all_reduce over tp", "send to the other mesh"]
    words = told((4096, 4096), first, [P()], [R()], to=ProcessMesh([4, 5, 6], ["tp"])).splitlines()
    assert [line.split(" ")[0] for line in words] == ["reduce_scatter", "send", "all_gather"]
    words = told((4, 6), parse_mesh("a=2,b=2"), [S(0), S(1)], [S(1), S(0)])
    assert words == "exchange among the ranks: 2 messages, 48 B in all; then f32[4_b, 6_a]"
    same = told((4, 6), first, [S(0)], [S(1)], to=ProcessMesh([0, 1], ["tp"]))
    assert same.startswith("all_to_all over tp")
    with pytest.raises(ValueError, match="expected a dtype, and sizes that are numbers, got f32.B_tp."):
        viz.reshard((symbol("B"),), first, [S(0)], [S(0)], to=second)


# ------------------------------------------------------------------------------------------------------ notation
@given(st.data())
def test_the_notation_reads_back(data):
    mesh = parse_mesh("dp=2,tp=2,pp=2")
    shape = tuple(data.draw(st.lists(st.integers(0, 99), max_size=3)))
    kinds = [R(), P(), P("max"), *(S(d, shard_order=o, split_factor=f) for d in range(len(shape)) for o in (0, 1, 2)
                                   for f in (1, 3))]
    placements = canonical([data.draw(st.sampled_from(kinds)) for _ in mesh.names])
    text = sharding_text(shape, np.dtype("float32"), mesh, placements)
    assert parse_sharding(f"some.name: {text}", mesh) == ("some.name", np.dtype("float32"), shape, placements)


def test_pictures_of_real_tensors_come_from_what_they_hold():
    mesh = parse_mesh("tp=1")
    t = paddle.distributed.shard_tensor(paddle.ones([4, 2]), mesh, [S(0)])
    assert re.search(r"f32\[4_tp, 2\]", viz.tensor(t).svg)
