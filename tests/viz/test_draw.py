"""`minipd draw`: every thing from the shell, as a picture and as text, and what is said where it cannot be."""

import json
import os
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from minipd.cli import main
from minipd.framework.meta import Meta
from minipd.ir.traced import trace

FILE = """
import minipd as paddle
from minipd.static import InputSpec

@paddle.jit.to_static(input_spec=[InputSpec([4, 8], "float32")])
def norm(x):
    return x / ((x * x).mean(-1, keepdim=True) + 1e-5).sqrt()

def pick(x, y):
    return paddle.static.nn.cond(x.sum() > y.sum(), lambda: x * y, lambda: x)

def product(x, w):
    return (x @ w).sum()

def twice(x):
    return x.transpose([1, 0]).transpose([1, 0])

number = 3
"""
RECORDS = [{"rank": rank, "stage": rank, "type": kind, "micro": 0, "start": start, "end": end}
           for rank, kind, start, end in [(0, "forward", 0.0, 0.001), (1, "forward", 0.001, 0.002),
                                          (1, "backward", 0.002, 0.004), (0, "backward", 0.004, 0.006)]]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(FILE)
    (tmp_path / "p.pir").write_text(
        trace(lambda x: x.exp(), Meta((2,), np.dtype(np.float32))).program.to_string("exact"))
    (tmp_path / "timeline.json").write_text(json.dumps(RECORDS))
    (tmp_path / "broken.json").write_text("[{}]")
    (tmp_path / "fails.py").write_text("1 / 0")
    return path


def words(path):
    return " ".join(ElementTree.parse(path).getroot().itertext())


@pytest.mark.parametrize(("request_", "said", "shown"), [
    ("tape {file}:product -i float32[2,3] -i float32[3,4]", "matmul", "leaf w"),
    ("program {file}:norm", "mean keepdim=True axis=(1,)", "f32[4, 8]"),
    ("program {file}:pick -i float32[2,S] -i float32[2,S]", "if true", "f32[2, S]"),
    ("program {dir}/p.pir --ops 1:2", "exp", "%1: f32[2]"),
    ("program {file}:norm --depth 0", "digraph", "f32[4, 8]"),
    ("program {file}:twice -i float32[2,3] --pass remove_redundant_transpose_pass --side-by-side",
     "- a = transpose(input_0, perm=(1, 0))  |", "after: 2 operations"),
    ("matches {file}:twice -i float32[2,3] --rules remove_redundant_transpose_pass:TransposeBack",
     "TransposeBack matches: transpose, transpose", "x of TransposeBack"),
    ("matches {file}:norm -r silu_fuse_pass", "Silu: 0 of 2", "here it stops"),
    ("memory {file}:norm", "arena", "bound"),
    ("memory {file}:product -i float32[S,3] -i float32[3,4] --size S=8", "bound", "f32[8, 4]"),
    ("{dir}/p.pir", "digraph", "data input_0"),
    ("use-def {dir}/p.pir --value %0", "use 0: operand 0", "use-def chain of %0"),
    ("groups {file}:norm", "fusion group", "sqrt"),
    ("loops {file}:norm", "parallel for (i, 0, x0.shape[0])", "vectorize for (j"),
    ("steps {file}:norm", "s.simple_compute_at(", "s.vectorize('j"),
    ("mesh dp=2,tp=3", "rank 5: dp 1, tp 2", "mesh dp = 2, tp = 3"),
    ("tensor w:f32[5_tp,8] --mesh tp=4", "rank 2: [1, 8] from [4, 0]", "w: f32[5_tp, 8]"),
    ("reshard f32[4,6]{{P_tp}} f32[4_tp,6] --mesh tp=2", "reduce_scatter over tp: each rank sends 48 B, 96 B in all",
     "f32[4, 6]{{P_tp}}"),
    ("reshard f32[6_dp] f32[6_dp] --mesh dp=2 --to dp=3", "send to the other mesh: 4 messages, 24 B in all", "rank 4"),
    ("schedule 1F1B --stages 2 --micro 3", "stage 0: F0 F1 B0 F2 B1 B2 optimizer", "1F1B, 2 stages, 3 micro-batches"),
    ("schedule {dir}", "rank 1: backward 0 from 2.000 to 4.000 ms", "rank 1, stage 1"),
])
def test_each_thing_as_text_and_as_a_picture(file, tmp_path, capsys, request_, said, shown):
    argv = ["draw", *(word.format(file=file, dir=tmp_path) for word in request_.split())]
    assert main(argv) == 0
    assert said.format() in capsys.readouterr().out
    assert main([*argv, "-o", str(tmp_path / "out.svg")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out.svg'}\n"
    assert shown.format() in words(tmp_path / "out.svg")


def test_layers_are_a_page(file, tmp_path, capsys):
    assert main(["draw", "layers", f"{file}:norm", "-o", str(tmp_path / "out.html")]) == 0
    assert (tmp_path / "out.html").read_text().count("<svg") == 1
    assert main(["draw", "layers", f"{file}:norm"]) == 0 and "digraph" in capsys.readouterr().out


def test_a_graph_can_be_saved_as_dot(file, tmp_path):
    assert main(["draw", "program", f"{file}:norm", "-o", str(tmp_path / "out.dot")]) == 0
    assert (tmp_path / "out.dot").read_text().count("->") == 9


@pytest.mark.parametrize(("request_", "problem"), [
    ("nowhere.py:f", "no such file"), ("{file}:missing", "expected a name that"), ("{file}", "name the function"),
    ("{file}:number", "expected a function or a Program, got int"), ("{dir}/fails.py:f", "ZeroDivisionError"),
    ("{file}:pick -i float32", "expected an input such as float32"),
    ("{file}:pick -i float33[2]", "expected an input such as float32"),
    ("{file}:pick -i float32[2]", "expected a function of 1 tensors"),
    ("{file}:norm -o x.png", "expected a drawing that ends in .svg or .dot or .gv, got x.png"),
    ("loops {file}:norm -o x.dot", "expected a drawing that ends in .svg, got x.dot"),
    ("mesh dp=2 -o {dir}/no/x.svg", "expected a place to write the drawing to"),
    ("program {dir}/p.pir --ops 2", "expected operations as FROM:TO"),
    ("program {dir}/p.pir --ops 2:1", "expected operations as FROM:TO"),
    ("program {dir}/timeline.json", "expected an object, got a list of 4 entries"),
    ("program {dir}/p.pir --side-by-side", "expected passes with --side-by-side"),
    ("program {dir}/p.pir --side-by-side -p silu_fuse_pass --depth 1", "neither --depth nor --ops, got one of these"),
    ("matches {dir}/p.pir -r no_pass", "expected the name of a pass, got 'no_pass'"),
    ("matches {dir}/p.pir -r silu_fuse_pass:Gelu", "expected a rule of silu_fuse_pass: Silu, got 'Gelu'"),
    ("matches {dir}/p.pir -r dead_code_elimination_pass", "expected a rule of dead_code_elimination_pass: it has none"),
    ("use-def {dir}/p.pir --value %9", "expected a value of the program, %0 to %1, got %9"),
    ("use-def {dir}/p.pir --depth 0", "expected a depth of at least 1"),
    ("program {file}:norm --depth -1", "expected a depth of at least 0, got -1"),
    ("memory {file}:product -i float32[S,3] -i float32[3,4]", "expected a size for each open dimension"),
    ("memory {file}:norm --size S0=2", "expected a size for each open dimension of the program, none, got S0"),
    ("memory {file}:norm --size S0=many", "expected a size such as S0=8, got 'S0=many'"),
    ("layers {file}:norm -o x.svg", "expected a page that ends in .html, got x.svg"),
    ("tape {file}:product -i float32[S,3] -i float32[3,4]", "expected inputs whose sizes are numbers"),
    ("tape {file}:product -i int64[2,3] -i int64[3,4]", "expected a tensor with a gradient history"),
    ("tape {file}:product -i float32[2,3]", "expected a function of 1 tensors"),
    ("tape {file}:number", "expected a tensor with a gradient history"),
    ("loops {dir}/p.pir --nothing", None),
    ("mesh dp=two", "expected a mesh such as dp=2,tp=2"),
    ("tensor f32[5_tp --mesh tp=4", "expected a sharded tensor such as"),
    ("tensor f33[5_tp] --mesh tp=4", "f33 is no dtype"),
    ("tensor f32[B_tp] --mesh tp=4", "'B' is no size"),
    ("tensor f32[5_dp] --mesh tp=4", "expected axes of the mesh tp=4, each once, got dp"),
    ("tensor f32[5_tp,4_tp] --mesh tp=4", "expected axes of the mesh tp=4, each once, got tp"),
    ("tensor f32[5]{{Pmean_tp}} --mesh tp=4", "expected a ReduceType"),
    ("tensor f32[8_tp(0)] --mesh dp=2,tp=2", "'tp(0)' is no axis, or one with a split factor such as tp(3)"),
    ("reshard f32[4] f32[5] --mesh tp=4", "expected the same tensor twice"),
    ("schedule 2F2B", "expected FThenB or 1F1B, or a run folder"),
    ("schedule 1F1B --stages 0", "expected --stages of at least 1"),
    ("schedule {dir}/broken.json", "expected the timeline of a run"),
])
def test_what_cannot_be_drawn(file, tmp_path, capsys, request_, problem):
    argv = ["draw", *(word.format(file=file, dir=tmp_path) for word in request_.split())]
    if problem is None:
        with pytest.raises(SystemExit):
            main(argv)
        return
    assert main(argv) == 2
    assert problem in capsys.readouterr().err


def test_help_lists_everything(capsys):
    with pytest.raises(SystemExit):
        main(["draw", "--help"])
    text = capsys.readouterr().out
    assert all(f"\n    {name} " in text for name in
               ("tape", "program", "matches", "use-def", "groups", "loops", "steps", "mesh", "tensor", "reshard",
                "schedule"))


def test_a_closed_floor_closes_its_pictures():
    done = subprocess.run([sys.executable, "-m", "minipd", "draw", "mesh", "dp=2"], capture_output=True, text=True,
                          env={**os.environ, "MINIPD_FLOOR": "4"}, timeout=120)
    assert done.returncode == 2 and "floor 5 is closed in chapter 4: minipd.dist" in done.stderr
    code = ("import minipd as p; from minipd import viz; x = p.ones([2]); x.stop_gradient = False; "
            "print(viz.tape(x * 2.0))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={**os.environ, "MINIPD_FLOOR": "1"}, timeout=120)
    assert done.stdout.startswith("<Svg 'tape of f32[2]'"), done.stderr


def test_a_function_as_it_is_written_has_regions(tmp_path):
    """An `if` on a tensor becomes one of the program, as `to_static` makes it."""
    file = tmp_path / "mine.py"
    file.write_text("def f(x):\n    if x.sum() > 0:\n        return x * 2.0\n    return x - 1.0\n")
    out = tmp_path / "f.svg"
    assert main(["draw", "program", f"{file}:f", "-i", "float32[S,4]", "-o", str(out)]) == 0
    assert 'class="region"' in out.read_text()
