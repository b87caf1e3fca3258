"""Pictures of distributed programs: the placements of all values, and beside them what one rank runs."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from minipd import viz
from minipd.cli import main
from minipd.dist.api.tensors import reshard, shard_tensor
from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.reshard.plan import bytes_sent, plan
from minipd.dist.static.passes import stages
from minipd.framework.meta import Meta
from minipd.ir.traced import trace
from minipd.nn import functional as F
from minipd.viz.dist.placed import pairs, placed_text, sent_by

S, R, P = Shard, Replicate(), Partial()
SVG = "{http://www.w3.org/2000/svg}"
F32 = np.dtype("float32")


def program(function, *shapes):
    return trace(function, *(Meta(shape, F32) for shape in shapes)).program


def layers(mesh=None):
    mesh = mesh or parse_mesh("dp=2,tp=2")

    def run(x, w, v):
        x = shard_tensor(x, mesh, [S(0), R])
        h = F.relu(x @ shard_tensor(w, mesh, [R, S(1)]))
        return F.relu(h @ shard_tensor(v, mesh, [R, S(0)]))
    return program(run, (4, 8), (8, 16), (16, 8))


def test_each_operation_stands_beside_what_the_rank_does_for_it():
    found = [(p.left and p.left.type, p.right and p.right.words, p.right and p.right.type) for p in pairs(layers(), 3)]
    assert found[3:] == [
        ("f32[4_dp, 16_tp]", "matmul", "f32[2, 8]"), ("f32[4_dp, 16_tp]", "relu", "f32[2, 8]"),
        ("f32[4_dp, 8]{P_tp}", "matmul", "f32[2, 8]"), (None, "all_reduce over tp, sends 64 B", "f32[2, 8]"),
        ("f32[4_dp, 8]", "relu", "f32[2, 8]"), ("", "shadow_output output_0", "")]


def test_what_communicates_is_red():
    root = ElementTree.fromstring(viz.placed(layers(), 3).svg)
    assert len([r for r in root.iter(f"{SVG}rect") if r.get("class") == "comm"]) == 1
    assert {"all ranks", "rank 3", "all_reduce over tp, sends 64 B"} <= {t.text for t in root.iter(f"{SVG}text")}
    assert {"ranks 0 1: [2, 8]", "ranks 2 3: [2, 8]"} <= {t.text for t in root.iter(f"{SVG}title")}


def test_the_program_stays_as_it_is():
    marked = layers()
    before = str(marked)
    viz.placed(marked)
    assert str(marked) == before
    assert placed_text(stages(marked, 0)["completion_pass"]) == placed_text(marked)     # a completed one will do


def test_stages_on_other_ranks():
    first, second = ProcessMesh([0, 1], ["tp"]), ProcessMesh([2, 3], ["tp"])
    both = program(lambda x: reshard(shard_tensor(x, first, [S(0)]).tanh(), second, [S(0)]).exp(), (4, 2))
    words = [p.right.words for p in pairs(both, 0) if p.right]
    assert any(re.match("p2p_send to rank 2, sends 16 B|send_v2 to rank 2, sends 16 B", w) for w in words)
    assert any(" from rank 0" in p.right.words for p in pairs(both, 2) if p.right)


@pytest.mark.parametrize(("src", "dst"), [(S(0), R), (P, R), (P, S(0)), (S(0), S(1))])
def test_bytes_are_those_that_the_ranks_send(src, dst):
    """The witness is the plan, which counts from the split rule, not from operations."""
    mesh = parse_mesh("tp=3")
    found = program(lambda x: reshard(shard_tensor(x, mesh, [src]) * 1.0, mesh, [dst]), (5, 4))
    steps = plan((src,), (dst,), mesh, 2, (5, 4))
    for rank in range(3):
        own = stages(found, rank)["dist2dense_pass"]
        assert sum(sent_by(op, rank) for op in own.global_block()) == bytes_sent(steps, (5, 4), F32, rank)


def test_what_cannot_be_drawn_is_refused(tmp_path, capsys):
    with pytest.raises(ValueError, match="placed: expected a program with a distributed value, got one without"):
        viz.placed(program(lambda x: x.exp(), (2,)))
    with pytest.raises(ValueError, match=r"expected a rank that the program's values are on, one of \[0, 1\], got 7"):
        viz.placed(layers(parse_mesh("dp=1,tp=2")), 7)
    file = tmp_path / "model.py"
    file.write_text("""
from minipd import distributed as dist
mesh = dist.ProcessMesh([0, 1], ["tp"])

def f(x):
    return dist.reshard(dist.shard_tensor(x, mesh, [dist.Shard(0)]).exp(), mesh, [dist.Replicate()])
""")
    assert main(["draw", "placed", f"{file}:f", "-i", "float32[4,2]", "--rank", "1"]) == 0
    assert "| all_gather over tp, sends 16 B  f32[4, 2]" in capsys.readouterr().out
    assert main(["draw", "placed", f"{file}:f", "-i", "float32[4,2]", "--rank", "5"]) != 0
    assert "one of [0, 1], got 5" in capsys.readouterr().err
