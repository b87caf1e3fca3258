"""The report of a run: everything on it comes from the run folder, and what the folder lacks is left out."""

import json
import math
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import minipd as paddle
from minipd import viz
from minipd.cli import main
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Shard
from minipd.framework.errors import InputError
from minipd.models.config import RunConfig, save
from minipd.models.config.values import with_values
from minipd.models.report import report_at_the_end, write_report
from minipd.models.report.figures import layer_part
from minipd.models.report.parameters import most_bytes, stages
from minipd.models.report.run import read_run

PROGRAM = """{
    (%0) = "builtin.parameter" () {parameter_name: "layers.0.w"} : () -> tensor<2x2xf32>
    (%1) = "builtin.parameter" () {parameter_name: "layers.1.w"} : () -> tensor<2x2xf32>
    (%2) = "pd_op.data" () {name: "x"} : () -> tensor<2x2xf32>
    (%3) = "pd_op.matmul" (%2, %0) {transpose_x: false, transpose_y: false} : (tensor<2x2xf32>, tensor<2x2xf32>) -> \
tensor<2x2xf32>
    (%4) = "pd_op.silu" (%3) {} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    (%5) = "pd_op.matmul" (%4, %1) {transpose_x: false, transpose_y: false} : (tensor<2x2xf32>, tensor<2x2xf32>) -> \
tensor<2x2xf32>
    () = "builtin.shadow_output" (%5) {output_name: "y"} : (tensor<2x2xf32>) ->
}
"""


def parameter(name, shape, mesh, ranks, placements):
    return {"name": name, "shape": shape, "dtype": "float32", "mesh": mesh, "ranks": ranks, "placements": placements}


def pipeline_run(path, mesh="pp=2,tp=2"):
    """A run of two stages with two ranks each, as it might have left it."""
    path.mkdir(parents=True, exist_ok=True)
    values = {"dist.mesh": mesh, "train.micro_batches": 4, "train.steps": 3, "dist.comm": "sim"}
    save(with_values(RunConfig(), values, "test"), path / "config.toml")
    rows = [{"step": s, "loss": 7.0 - s, "seconds": 0.5, "tokens": 1000, "lr": 1e-3} for s in (1, 2, 3)]
    rows[2]["val_loss"] = 4.25
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    jobs = [(0, "forward", 0.0, 0.01), (1, "forward", 0.01, 0.02), (1, "backward", 0.02, 0.04),
            (0, "backward", 0.04, 0.06)]
    (path / "timeline.json").write_text(json.dumps(
        [{"rank": 2 * stage + r, "stage": stage, "type": kind, "micro": 3, "start": start, "end": end}
         for r in (0, 1) for stage, kind, start, end in jobs]))
    (path / "memory.json").write_text(json.dumps({"0": 200 << 20, "1": 200 << 20, "2": 100 << 20, "3": 100 << 20}))
    (path / "sharding.json").write_text(json.dumps([
        parameter("embed.weight", [10, 4], {"tp": 2}, [0, 1], ["S(0)"]),
        parameter("layers.0.up.weight", [4, 8], {"tp": 2}, [0, 1], ["S(1)"]),
        parameter("layers.1.up.weight", [4, 8], {"tp": 2}, [0, 1], ["S(1)"]),
        parameter("layers.2.up.weight", [4, 8], {"tp": 2}, [2, 3], ["S(1)"]),
        parameter("norm.weight", [4], {"tp": 2}, [2, 3], ["R"])]))
    (path / "entropy.json").write_text('{"unigram": 5.5, "bigram": 4.5}')
    (path / "sample.txt").write_text("Once <upon> a time & so on\n")
    (path / "step.rank0.forward.pir").write_text(PROGRAM)
    fused = PROGRAM.replace('"pd_op.silu" (%3) {}', '"cinn_runtime.jit_kernel" (%3) {kernel: "silu_1"}')
    (path / "step.rank0.forward.cinn.pir").write_text(fused)
    return path


class Page(HTMLParser):
    """Sections, texts, and tags with their attributes; fails on tags that do not close."""

    VOID = ("meta", "br", "link", "img", "input")

    def __init__(self, text):
        super().__init__()
        self.open, self.sections, self.texts, self.tags = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "section":
            self.sections.append(dict(attrs)["id"])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.texts.append(data)


def report(path):
    return Page(write_report(path).read_text())


# ------------------------------------------------------------------------------------------------------- content
def test_a_pipeline_run_has_every_section(tmp_path):
    page = report(pipeline_run(tmp_path / "0007"))
    assert page.sections == ["loss", "sample", "mesh", "pipeline", "parameters", "program", "memory", "configuration"]
    words = " ".join(" ".join(page.texts).split())
    for said in ("Run 0007", "pp=2,tp=2", "unigram 5.50", "bigram 4.50", "Once <upon> a time & so on",
                 "4.250", "2,000", "rank 3, stage 1", "1F1B", "200 MiB", "layers.*.up.weight",
                 "f32[4, 8_tp]", "Stage 1, ranks 2 3", "jit_kernel silu_1", "micro_batches = 4"):
        assert said in words, said


def test_the_page_needs_nothing_else_and_runs_nothing(tmp_path):
    text = write_report(pipeline_run(tmp_path / "1")).read_text()
    tags = {tag for tag, _ in Page(text).tags}
    assert not tags & {"script", "link", "img", "iframe", "object", "image", "use", "a"}
    assert set(re.findall(r"https?://[^\"\s<)]*", text)) == {"http://www.w3.org/2000/svg"}
    assert "url(" not in text and "@import" not in text
    assert text.count(".minipd .op{") == 2              # one sheet for all pictures: on light and on dark ground


def test_another_mesh_gives_other_pictures(tmp_path):
    one = pipeline_run(tmp_path / "a" / "1")
    other = pipeline_run(tmp_path / "b" / "1", mesh="tp=2,pp=2")
    pictures = [re.findall(r"<svg.*?</svg>", write_report(run).read_text(), re.DOTALL) for run in (one, other)]
    assert len(pictures[0]) == len(pictures[1])
    title = [re.findall(r"<title>(mesh [^<]*)", "".join(found)) for found in pictures]
    assert title == [["mesh pp=2,tp=2"], ["mesh tp=2,pp=2"]]
    # Where parameters lay, and what ranks did, is drawn from what the run wrote of it.
    entries = json.loads((other / "sharding.json").read_text())
    (other / "sharding.json").write_text(json.dumps([{**e, "mesh": {"tp": 4}, "ranks": [0, 1, 2, 3]} for e in entries]))
    jobs = json.loads((other / "timeline.json").read_text())
    (other / "timeline.json").write_text(json.dumps([job | {"micro": 1} for job in jobs if job["rank"] < 2]))
    changed = " ".join(report(other).texts)
    assert "Ranks 0 1 2 3 hold at most" in changed and "rank 3, stage 1" not in changed


def test_what_a_run_has_not_left_is_left_out(tmp_path):
    run = tmp_path / "0001"
    run.mkdir()
    save(with_values(RunConfig(), {"dist.mesh": "dp=1"}, "test"), run / "config.toml")
    page = report(run)
    assert page.sections == ["mesh", "configuration"]
    (run / "metrics.jsonl").write_text('{"step": 1, "loss": NaN, "seconds": 0.0, "tokens": 8}\n')
    page = report(run)
    assert page.sections == ["mesh", "configuration"] and "nan" in page.texts       # nothing to draw, but to tell
    pipeline_run(tmp_path / "2")
    for name in ("timeline.json", "step.rank0.forward.cinn.pir", "entropy.json"):
        (tmp_path / "2" / name).unlink()
    page = report(tmp_path / "2")
    assert "pipeline" not in page.sections and "As it runs" in page.texts and "After fusion" not in page.texts


# ---------------------------------------------------------------------------------------------------- parameters
def test_parameters_alike_share_a_line_and_bytes_are_those_of_a_rank(tmp_path):
    run = read_run(pipeline_run(tmp_path / "1"))
    first, second = stages(run.parameters)
    assert [(row.name, row.layers, row.notation, row.local, row.bytes) for row in first.rows] == [
        ("embed.weight", "", "f32[10_tp, 4]", "[5, 4]", "80 B"),
        ("layers.*.up.weight", "0, 1", "f32[4, 8_tp]", "[4, 4]", "64 B")]
    assert (first.ranks, first.bytes, second.ranks, second.bytes) == ("0 1", "208 B", "2 3", "80 B")
    assert most_bytes(run.parameters[:1]) == 80


def test_a_real_tensor_is_told_as_the_run_tells_it():
    t = paddle.distributed.shard_tensor(paddle.ones([4, 2]), parse_mesh("tp=1"), [Shard(0)])
    assert "f32[4_tp, 2]" in viz.tensor(t).svg


# ------------------------------------------------------------------------------------------------------- program
def test_a_layer_is_what_lies_between_readers_of_parameters():
    from minipd.ir.parser import parse
    assert layer_part(parse(PROGRAM)) == ("layer 0", range(3, 5))
    assert layer_part(parse(PROGRAM.replace("layers.1.w", "norm.w"))) == ("layer 0", range(3, 5))
    assert layer_part(parse(PROGRAM.replace("layers.1.w", "layers.0.v"))) == ("layer 0", range(3, 7))
    assert layer_part(parse(PROGRAM.replace("layers.0.w", "a").replace("layers.1.w", "b"))) is None


# -------------------------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize(("name", "text", "problem"), [
    ("timeline.json", "[{}]", "expected records of jobs in timeline.json"),
    ("timeline.json", "{}", "expected a JSON list, got .*timeline.json, a dict"),
    ("timeline.json", "[", "expected a JSON file"),
    ("memory.json", '{"zero": 1}', "expected numbers in memory.json"),
    ("entropy.json", '{"unigram": []}', "expected numbers in memory.json and entropy.json"),
    ("sharding.json", '[{"name": "w"}]', "expected entries with name, shape"),
    ("sharding.json", json.dumps([parameter("w", [4], {"tp": 2}, [0, 1], ["X"])]), "expected a placement R, S"),
    ("sharding.json", json.dumps([parameter("w", [4], {"tp": 2}, [0, 1], ["S(1)"])]), "w: expected Shard"),
    ("step.rank0.forward.pir", "{", "expected a program in the exact style"),
    ("metrics.jsonl", '{"step": 1}\n', "expected a number for loss in each line of metrics.jsonl"),
    ("metrics.jsonl", '{"step": 1, "loss": 2.0, "seconds": NaN, "tokens": 9}\n', "expected a number for seconds"),
    ("metrics.jsonl", '{"step": 1, "loss": 2.0, "seconds": 1.0, "tokens": 9, "val_loss": null}\n',
     "expected a number for val_loss"),
    ("memory.json", '{"0": Infinity}', "expected numbers in memory.json"),
    ("entropy.json", '{"unigram": Infinity}', "expected numbers in memory.json and entropy.json"),
    ("timeline.json", '[{"rank": 0, "stage": 0, "type": "forward", "micro": 0, "start": 0, "end": Infinity}]',
     "expected records of jobs in timeline.json"),
    ("sharding.json", json.dumps([parameter(3, [4], {"tp": 2}, [0, 1], ["R"])]), "expected entries with name, shape"),
    ("sharding.json", json.dumps([parameter("w", ["four"], {"tp": 2}, [0, 1], ["R"])]), "expected entries with name"),
    ("config.toml", "out = 3", "expected out to be a text"),
    ("config.toml", '[dist]\nmesh = "two"', "expected the configuration of a run in .*, got .*mesh"),
    ("config.toml", '[dist]\nschedule = "2F2B"', "expected the configuration of a run in .*, got .*schedule"),
])
def test_files_that_are_broken_are_named_and_the_old_report_stays(tmp_path, name, text, problem):
    run = pipeline_run(tmp_path / "1")
    (run / "report.html").write_text("old")
    (run / name).write_text(text)
    with pytest.raises(InputError, match=problem):
        write_report(run)
    assert (run / "report.html").read_text() == "old"


def test_a_configuration_may_leave_values_to_their_defaults(tmp_path):
    """As many micro-batches as a pipeline has where nobody says otherwise: the ideal one is drawn with them."""
    run = pipeline_run(tmp_path / "1")
    given = report(run)
    (run / "config.toml").write_text('[dist]\nmesh = "pp=2,tp=2"\ncomm = "sim"\n')
    assert report(run).sections == given.sections and read_run(run).config.train.micro_batches == 4


def test_a_report_that_fails_at_the_end_of_a_run_is_a_warning(tmp_path):
    run = pipeline_run(tmp_path / "0001")
    assert report_at_the_end(run) == f"report: {run / 'report.html'}"
    (run / "timeline.json").write_text("[")
    assert report_at_the_end(run).startswith(f"warning: no report of {run} (InputError: expected a JSON file")
    assert "(InputError: expected a run folder" in report_at_the_end(tmp_path / "nowhere")


def test_training_ends_with_a_report(tmp_path, capsys):
    values = {"model.layers": 2, "model.dim": 8, "model.heads": 2, "model.ffn_dim": 8, "model.vocab_size": 300,
              "data.seq_len": 8, "train.batch": 4, "train.micro_batches": 2, "train.steps": 2, "train.eval_batches": 1,
              "sample.tokens": 4, "dist.mesh": "pp=2", "dist.comm": "sim", "out": str(tmp_path)}
    assert main(["train", *(word for key, value in values.items() for word in (f"--{key}", str(value)))]) == 0
    assert f"report: {tmp_path / '0001' / 'report.html'}" in capsys.readouterr().out
    page = Page((tmp_path / "0001" / "report.html").read_text())
    assert page.sections == ["loss", "sample", "mesh", "pipeline", "parameters", "program", "memory", "configuration"]
    words = " ".join(page.texts)
    assert "unigram" in words and "rank 1, stage 1" in words and "jit_kernel" in words


def metrics(run, *losses):
    """Write what steps 1, 2, ... measured."""
    (run / "metrics.jsonl").write_text("".join(
        json.dumps({"step": step, "seconds": 0.5, "tokens": 32, "lr": 0.1, **row}) + "\n"
        for step, row in enumerate(losses, 1)))


def test_the_loss_curve_is_a_file_too_the_same_for_the_same_run(tmp_path):
    run = pipeline_run(tmp_path / "0001")
    metrics(run, {"loss": 6.9}, {"loss": 6.0, "val_loss": 6.2}, {"loss": math.nan}, {"loss": 5.0, "val_loss": 5.1})
    (run / "entropy.json").write_text('{"unigram": 5.9, "bigram": 3.94}')
    write_report(run)
    curve = (run / "loss.svg").read_bytes()
    words = [e.text for e in ElementTree.fromstring(curve).iter() if e.tag.endswith("text")]
    assert {"training", "validation", "unigram 5.90", "bigram 3.94", "step"} <= set(words)
    write_report(run)
    assert (run / "loss.svg").read_bytes() == curve


def test_only_the_losses_that_were_measured_are_drawn_and_without_steps_none(tmp_path):
    run = pipeline_run(tmp_path / "0001")
    (run / "entropy.json").unlink()
    metrics(run, {"loss": 6.9})
    write_report(run)
    text = (run / "loss.svg").read_text()
    assert "training" in text and "validation" not in text and "unigram" not in text
    (run / "loss.svg").unlink()
    metrics(run)
    write_report(run)
    assert not (run / "loss.svg").exists()


def test_the_command(tmp_path, capsys):
    run = pipeline_run(tmp_path / "0001")
    assert main(["report", str(run)]) == 0
    assert capsys.readouterr().out.strip() == str(run / "report.html")
    assert main(["report", str(tmp_path)]) == 2
    assert "expected a run folder, with its config.toml" in capsys.readouterr().err


# --------------------------------------------------------------------------------------------------------- chart
def test_curves_leave_out_what_is_not_finite_and_thin_out_long_lines():
    from minipd.viz.chart import Line, curves
    points = [(i, 5 + math.sin(i)) for i in range(100_000)] + [(100_000, math.nan)]
    picture = curves([Line("loss", points), Line("nothing", [])], {"unigram": 5.5, "bigram": 5.49}, "step", "nats", "t")
    assert len(picture.svg) < 60_000 and "nan" not in picture.svg
    levels = [float(y) for y in re.findall(r'y="([\d.-]+)">(?:unigram|bigram) ', picture.svg)]
    assert abs(np.subtract(*levels)) >= 13              # their names do not lie on each other
    with pytest.raises(ValueError, match="expected points to draw"):
        curves([Line("loss", [(1, math.inf)])], {}, "step", "nats", "t")


def test_bars_are_as_long_as_their_values():
    from minipd.viz.chart import bars
    svg = bars({"a": 4.0, "b": 1.0, "c": 0.0}, {"a": "4", "b": "1", "c": "0"}, "t").svg
    a, b, c = (float(w) for w in re.findall(r'class="forward"[^>]*width="([\d.]+)"', svg))
    assert a == pytest.approx(4 * b, abs=0.3) and c == 1
    with pytest.raises(ValueError, match="expected values to draw"):
        bars({}, {}, "t")
