"""The layout of graphs: everything that must hold of any picture, on random graphs with nested clusters."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipd.viz.graph import Cluster, Edge, Graph, Node
from minipd.viz.layout.across import pooled, straighten
from minipd.viz.layout.flat import Box, Wire, flat
from minipd.viz.layout.nested import place
from minipd.viz.layout.order import crossings, ordered
from minipd.viz.layout.rows import rows_of
from minipd.viz.render import graph_svg


def random_graph(seed: int) -> Graph:
    """An acyclic graph of nodes in clusters inside clusters, edges from earlier to later nodes."""
    rng = random.Random(seed)
    n = rng.randint(1, 30)
    root = Cluster("", "all")
    clusters = [root]
    while len(clusters) <= rng.randint(0, 4):
        inner = Cluster(f"c{len(clusters)}", f"cluster {len(clusters)}", rng.choice(["region", "fusion"]))
        rng.choice(clusters).clusters.append(inner)
        clusters.append(inner)
    clusters = [root, *root.all_clusters()]
    for i in range(n):
        # Clusters take consecutive nodes, as regions and fusion groups do: between them the graph has no circle.
        clusters[i * len(clusters) // n].nodes.append(Node(f"n{i}", f"node {i}\n" * rng.randint(1, 3)))
    edges = [Edge(f"n{a}", f"n{b}") for a in range(n) for b in range(a + 1, n) if rng.random() < 2 / n]
    return Graph("random", root, edges)


def placed(graph):
    def size(node):
        return 30 + 7 * len(node.name), 20 * node.label.count("\n") + 5

    return place(graph, size, lambda cluster: 60, lambda edge: 20)


def apart(one, other):
    (x, y, w, h), (x2, y2, w2, h2) = one, other
    return x + w <= x2 + 1e-6 or x2 + w2 <= x + 1e-6 or y + h <= y2 + 1e-6 or y2 + h2 <= y + 1e-6


def inside(inner, outer):
    (x, y, w, h), (x2, y2, w2, h2) = inner, outer
    return x >= x2 - 1e-6 and y >= y2 - 1e-6 and x + w <= x2 + w2 + 1e-6 and y + h <= y2 + h2 + 1e-6


@given(st.integers(0, 10_000))
def test_no_box_meets_another_and_frames_hold_their_own(seed):
    graph = random_graph(seed)
    got = placed(graph)
    boxes = got.nodes
    assert set(boxes) == {n.name for n in graph.root.all_nodes()}
    names = list(boxes)
    assert all(apart(boxes[a], boxes[b]) for i, a in enumerate(names) for b in names[:i])
    for cluster, *frame in got.frames:
        mine = {n.name for n in cluster.all_nodes()}
        assert all(inside(boxes[name], frame) if name in mine else apart(boxes[name], frame) for name in names)


@given(st.integers(0, 10_000))
def test_wires_run_from_source_to_target_and_through_no_box(seed):
    graph = random_graph(seed)
    got = placed(graph)
    for run in got.runs:
        ends = {run.edge.source, run.edge.target}
        if run.first:
            x, y, w, h = got.nodes[run.edge.source]
            assert x <= run.points[0][0] <= x + w and run.points[0][1] == pytest.approx(y + h)
        if run.last:
            x, y, w, h = got.nodes[run.edge.target]
            assert x - 1e-6 <= run.points[-1][0] <= x + w + 1e-6 and run.points[-1][1] == pytest.approx(y)
        for (x0, y0), (x1, y1) in zip(run.points, run.points[1:], strict=False):
            assert y1 >= y0
            if x0 == x1:                # what is bent stays between two rows
                for name, box in got.nodes.items():
                    assert name in ends or apart((x0, y0, 0, y1 - y0), box), f"{run.edge} through {name}"
    drawn = {(run.edge.source, run.edge.target) for run in got.runs if run.last}
    assert drawn == {(e.source, e.target) for e in graph.edges}


@given(st.integers(0, 10_000))
def test_pictures_are_the_same_every_time(seed):
    assert graph_svg(random_graph(seed)).svg == graph_svg(random_graph(seed)).svg


def test_rows_put_sources_beside_their_readers():
    #  0 -> 1 -> 2 -> 3, and a parameter 4 that only 3 reads
    assert rows_of(5, [(0, 1), (1, 2), (2, 3), (4, 3)]) == [0, 1, 2, 3, 2]


def test_a_circle_is_laid_out_too():
    assert rows_of(2, [(0, 1), (1, 0)]) == [0, 1]
    got = flat([Box(10, 10), Box(10, 10)], [Wire(0, 1), Wire(1, 0)], far=9)
    assert got.routes[1][0][1] > got.routes[1][-1][1]


def test_a_box_to_itself_and_no_box_at_all():
    assert rows_of(1, [(0, 0)]) == [0]
    assert flat([], [], far=9).corners == []
    assert "<rect" in graph_svg(Graph("nothing", Cluster("", ""))).svg


def test_what_would_cross_many_rows_is_a_tag():
    boxes = [Box(20, 10) for _ in range(12)]
    wires = [Wire(i, i + 1) for i in range(11)] + [Wire(0, 11, tag=17)]
    near, far = flat(boxes, wires, far=20), flat(boxes, wires, far=5)
    assert not near.tags and list(far.tags) == [11]
    (x, y), (_, target) = far.tags[11], far.corners[11]
    assert y < target and far.width >= x + 17


def test_crossings_are_counted_and_removed():
    rows = [[0, 1, 2], [3, 4, 5]]
    up = [[], [], [], [2], [1], [0]]
    down = [[5], [4], [3], [], [], []]
    assert crossings(rows, down) == 3
    assert crossings(ordered(rows, up, down), down) == 0


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=8), st.data())
def test_pooling_keeps_order_and_distance_and_no_other_place_is_better(wished, data):
    weights = [data.draw(st.floats(0.1, 5)) for _ in wished]
    distances = [data.draw(st.floats(0, 10)) for _ in wished[1:]]
    found = pooled(wished, weights, distances)
    assert all(b - a >= d - 1e-6 for a, b, d in zip(found, found[1:], distances, strict=False))

    def cost(at):
        return sum(w * (x - y) ** 2 for w, x, y in zip(weights, at, wished, strict=True))

    rng = random.Random(0)
    for _ in range(20):                 # convex: any right place is a direction to go, and none leads downhill
        other = [0.0]
        for d in distances:
            other.append(other[-1] + d + rng.random() * 10)
        shift = rng.uniform(-50, 50)
        step = [a + 0.01 * (b + shift - a) for a, b in zip(found, other, strict=True)]
        assert cost(step) >= cost(found) - 1e-6


def test_straightening_bends_only_where_there_is_no_room():
    x = [0.0, 3.0, -2.0, 40.0, 0.0]
    straighten(x, [[0], [1], [2], [3], [4]], [2] * 5, [[0, 1, 2, 3, 4]], 1)
    assert x[1] == x[2] == x[3]
    x = [0.0, 0.0, 0.0, 0.0, 2.0]       # box 4 is in the way of the middle one
    straighten(x, [[0], [1], [4, 2], [3]], [2] * 5, [[0, 1, 2, 3]], 1)
    assert x[2] == 5.0
