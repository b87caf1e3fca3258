"""The main job: training from the command line, on simulated and on MPI ranks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from minipd.cli import main
from minipd.dist.comm import connect
from minipd.framework.errors import InputError
from minipd.models.run_folder import read_metrics
from minipd.models.trainer import latest_checkpoint

TINY = ["--dim", "16", "--layers", "2", "--heads", "2", "--ffn_dim", "24", "--vocab_size", "300", "--seq_len", "16",
        "--batch", "4", "--eval_every", "100", "--eval_batches", "1", "--sample.tokens", "4", "--warmup", "0.5"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A small text in which something can be learnt."""
    folder = tmp_path_factory.mktemp("corpus")
    r = np.random.default_rng(0)
    words = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "sleeps"]
    path = folder / "text.txt"
    path.write_text(" ".join(words[i] for i in r.integers(0, len(words), 6000)))
    os.environ.setdefault("MINIPD_CACHE", str(folder / "cache"))
    return path


def train(corpus: Path, out: Path, *more: str, comm: str = "sim") -> Path:
    """Run `minipd train`; returns the new run folder."""
    before = set(out.glob("*"))
    assert main(["train", "--corpus", str(corpus), "--out", str(out), "--comm", comm, *TINY, *more]) == 0
    (new,) = set(out.glob("*")) - before
    return new


def losses(run: Path) -> list[float]:
    return [row["loss"] for row in read_metrics(run)]


def test_a_run_leaves_everything_in_its_folder(corpus, tmp_path, capsys):
    run = train(corpus, tmp_path, "--steps", "4")
    names = {p.name for p in run.iterdir()}
    assert {"config.toml", "metrics.jsonl", "loss.svg", "sample.txt", "checkpoints", "sharding.json", "memory.json",
            "entropy.json", "timeline.json", "step.stage0.global.pir", "step.stage1.global.pir",
            "step.rank0.forward.pir", "step.rank2.backward.cinn.pir", "step.rank2.update.kernels.py"} <= names
    rows = read_metrics(run)
    assert [row["step"] for row in rows] == [1, 2, 3, 4] and "val_loss" in rows[-1]
    assert {"loss", "lr", "seconds", "tokens", "memory"} <= rows[0].keys()
    assert "pd_dist.tensor<" in (run / "step.stage1.global.pir").read_text()
    assert '"pd_op.all_reduce"' in (run / "step.rank0.forward.pir").read_text()
    index = json.loads((run / "checkpoints" / "step-000004" / "index.json").read_text())
    assert index["ranks"] == 4 and index["tensors"]["llama.embed_tokens.weight"]["sharding"] == "f32[300_tp, 16]"
    shown = capsys.readouterr().out
    prompt = "It is a truth universally acknowledged, that"
    assert "unigram entropy" in shown and "step 4/4" in shown and prompt in shown
    assert (run / "sample.txt").read_text().startswith(prompt)


def test_without_stages_there_is_one_program_and_no_timeline(corpus, tmp_path):
    run = train(corpus, tmp_path, "--steps", "1", "--mesh", "dp=2,tp=2", "--sample.tokens", "0")
    names = {p.name for p in run.iterdir()}
    assert {"step.global.pir", "step.rank0.pir", "step.rank0.cinn.pir", "step.rank0.kernels.py"} <= names
    assert not {name for name in names if "rank1" in name or "stage" in name or "timeline" in name}


#: the long tests compile too: tests/parity does so on every mesh, and the tests of resuming do
COMPILED = pytest.param("--cinn", marks=pytest.mark.long)


@pytest.mark.parametrize("mode", ["--eager", "--no-cinn", COMPILED])
def test_every_mesh_trains_alike(corpus, tmp_path, mode):
    runs = {mesh: losses(train(corpus, tmp_path, "--steps", "4", "--dtype", "float64", "--mesh", mesh, mode))
            for mesh in ("dp=1,tp=1", "dp=2,tp=2")}
    np.testing.assert_allclose(runs["dp=2,tp=2"], runs["dp=1,tp=1"], rtol=1e-10)
    assert runs["dp=1,tp=1"][-1] < runs["dp=1,tp=1"][0]


STAGED = ["--layers", "3", "--micro_batches", "2", "--steps", "3", "--dtype", "float64"]


@pytest.mark.parametrize("mode", ["--eager", "--no-cinn", COMPILED])
def test_stages_train_like_one_rank_and_write_the_same(corpus, tmp_path, mode):
    """Three layers, two on the first stage, one on the second; loss, validation and sample are those of one rank."""
    one = train(corpus, tmp_path, *STAGED, "--mesh", "dp=1", mode)
    for mesh in ("pp=2,tp=2", "dp=2,pp=2"):
        run = train(corpus, tmp_path, *STAGED, "--mesh", mesh, mode)
        np.testing.assert_allclose(losses(run), losses(one), rtol=1e-10)
        assert read_metrics(run)[-1]["val_loss"] == pytest.approx(read_metrics(one)[-1]["val_loss"], rel=1e-10)
        assert (run / "sample.txt").read_text() == (one / "sample.txt").read_text()


def test_a_pipeline_leaves_its_timeline_and_where_its_parameters_were(corpus, tmp_path):
    run = train(corpus, tmp_path, *STAGED, "--mesh", "pp=2,tp=2", "--eager", "--no-tie_embeddings")
    events = json.loads((run / "timeline.json").read_text())
    for rank in range(4):
        jobs = [e for e in events if e["rank"] == rank]
        assert [(e["type"][0], e["micro"]) for e in jobs] == (
            [("f", 0), ("f", 1), ("b", 0), ("b", 1), ("o", 0)] if rank < 2 else
            [("f", 0), ("b", 0), ("f", 1), ("b", 1), ("o", 0)])
        assert {e["stage"] for e in jobs} == {rank // 2}
        times = [t for e in jobs for t in (e["start"], e["end"])]
        assert times == sorted(times) and times[0] >= 0
    placed = {p["name"]: p for p in json.loads((run / "sharding.json").read_text())}
    assert placed["llama.layers.1.mlp.up_proj.weight"] == {
        "name": "llama.layers.1.mlp.up_proj.weight", "shape": [16, 24], "dtype": "float64", "mesh": {"tp": 2},
        "ranks": [0, 1], "placements": ["S(1)"]}
    assert placed["lm_head.weight"]["ranks"] == [2, 3] and len(placed) == 9 * 3 + 3
    assert json.loads((run / "memory.json").read_text()).keys() == {"0", "1", "2", "3"}


@pytest.mark.parametrize("mode", ["--eager", "--no-cinn", "--cinn"])
def test_resume_continues_to_the_bit(corpus, tmp_path, mode):
    whole = train(corpus, tmp_path, "--steps", "6", "--checkpoint_every", "3", mode)
    first = whole / "checkpoints" / "step-000003"
    resumed = train(corpus, tmp_path, "--resume", str(first))
    assert losses(resumed) == losses(whole)             # the first three lines are copied, the others computed again
    assert (resumed / "checkpoints" / "step-000006").is_dir()


def test_any_mesh_goes_on_from_a_checkpoint_of_another(corpus, tmp_path):
    """With stages, without, and back: the next losses are those of the run that was not interrupted (hard case E7)."""
    whole = train(corpus, tmp_path, *STAGED, "--steps", "6", "--mesh", "dp=1", "--eager")
    run = train(corpus, tmp_path, *STAGED, "--steps", "6", "--mesh", "pp=2", "--eager", "--checkpoint_every", "2")
    first = run / "checkpoints" / "step-000002"
    for mesh in ("dp=2,tp=2", "tp=2,pp=2", "pp=3,dp=1"):
        resumed = train(corpus, tmp_path, *STAGED, "--steps", "6", "--resume", str(first), "--mesh", mesh,
                        "--checkpoint_every", "1")
        np.testing.assert_allclose(losses(resumed), losses(whole), rtol=1e-10)
        first = resumed / "checkpoints" / f"step-{int(first.name[5:]) + 1:06d}"


def test_a_checkpoint_copied_out_of_its_run_is_resumed(corpus, tmp_path, monkeypatch):
    run = train(corpus, tmp_path / "runs", "--steps", "4", "--checkpoint_every", "2", "--mesh", "dp=1,tp=1",
                "--no-cinn")
    shutil.copytree(run / "checkpoints" / "step-000002", tmp_path / "copy")
    monkeypatch.chdir(tmp_path)
    resumed = train(corpus, tmp_path / "runs", "--config", str(run / "config.toml"), "--resume", "copy")
    assert losses(resumed) == losses(run)[2:]


def test_what_an_interrupted_save_has_left_is_no_checkpoint(corpus, tmp_path):
    run = train(corpus, tmp_path, "--steps", "2", "--mesh", "dp=1,tp=1", "--no-cinn")
    shutil.copytree(run / "checkpoints" / "step-000002", run / "checkpoints" / "step-1000000")
    left = run / "checkpoints" / "step-1000001.tmp"
    left.mkdir()
    (left / "index.json").write_text("{")
    assert latest_checkpoint(run).name == "step-1000000"        # the largest number, not the last name


REFUSED = {
    "heads": (["--mesh", "dp=1,tp=4"], "expected model.heads that tp = 4 divides, got 2"),
    "batch": (["--mesh", "dp=3,tp=1"], "train.batch"),
    "mesh": (["--mesh", "dp=2;tp=2"], "expected a mesh"),
    "axis": (["--mesh", "dp=2,xp=2"], "expected mesh axes from dp, tp, pp"),
    "key": (["--train.stepz", "3"], "did you mean"),
    "value": (["--steps", "many"], "expected train.steps to be a whole number, got 'many'"),
    "resume": (["--resume", "nowhere"], "nowhere"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_cannot_be_done_is_refused_in_one_line(corpus, tmp_path, capsys, case):
    more, text = REFUSED[case]
    assert main(["train", "--corpus", str(corpus), "--out", str(tmp_path), "--comm", "sim", *TINY, *more]) == 2
    err = capsys.readouterr().err.strip()
    assert text in err and len(err.splitlines()) == 1
    assert not list(tmp_path.iterdir())                 # nothing was written


def test_a_missing_corpus_is_refused(tmp_path, capsys):
    assert main(["train", "--corpus", str(tmp_path / "none.txt"), "--out", str(tmp_path / "runs"), *TINY]) == 2
    err = capsys.readouterr().err.strip()
    assert "none.txt" in err and len(err.splitlines()) == 1 and not (tmp_path / "runs").exists()


def test_a_checkpoint_of_another_model_is_refused(corpus, tmp_path, capsys):
    run = train(corpus, tmp_path, "--steps", "2", "--mesh", "dp=2,tp=1", "--no-cinn")
    before = {p: p.stat().st_mtime_ns for p in run.rglob("*")}
    for more, text in ((["--dim", "32"], "model.dim"),
                       (["--steps", "2"], "train.steps above 2"), (["--dtype", "float64"], "train.dtype")):
        assert main(["train", "--resume", str(run), "--comm", "sim", *more]) == 2
        err = capsys.readouterr().err.strip()
        assert text in err and len(err.splitlines()) == 1
    assert {p: p.stat().st_mtime_ns for p in run.rglob("*")} == before
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(("key", "value", "said"), [
    ("step", None, "no step"), ("step", -1, "step = -1"), ("step", 2.5, "step = 2.5"), ("model", None, "no model"),
    ("model", "Llama", "model = 'Llama'"), ("dtype", None, "no dtype")])
def test_an_index_that_does_not_say_what_was_trained_is_refused(corpus, tmp_path, capsys, key, value, said):
    """value: None takes the key out."""
    run = train(corpus, tmp_path, "--steps", "1", "--mesh", "pp=1", "--eager", "--sample.tokens", "0")
    file = latest_checkpoint(run) / "index.json"
    index = json.loads(file.read_text())
    file.write_text(json.dumps({n: x for n, x in {**index, key: value}.items() if x is not None}))
    assert main(["train", "--resume", str(run), "--steps", "2", "--comm", "sim"]) == 2
    err = capsys.readouterr().err.strip()
    assert f"whose index.json says step, model and dtype, got {said} in {run}" in err and len(err.splitlines()) == 1


def test_mpiexec_around_the_command_is_refused(corpus, tmp_path, capsys, monkeypatch):
    """Every process of it would start ranks, and train by itself."""
    monkeypatch.delenv("MINIPD_RANKS", raising=False)
    monkeypatch.setenv("PMI_SIZE", "4")
    assert main(["train", "--corpus", str(corpus), "--out", str(tmp_path), *TINY]) == 2
    err = capsys.readouterr().err.strip()
    assert "4 of them, started by mpiexec: leave mpiexec out" in err and not list(tmp_path.iterdir())


def test_steps_that_overflow_are_skipped_and_said_so(corpus, tmp_path, capsys):
    run = train(corpus, tmp_path, "--steps", "4", "--lr", "1e30", "--warmup", "0")
    rows = read_metrics(run)
    assert not rows[0].get("skipped") and all(row["skipped"] for row in rows[1:])
    assert "step 2: the gradient is not finite; nothing was updated" in capsys.readouterr().out


@pytest.mark.parametrize("mode", ["--no-cinn", COMPILED])
def test_uneven_vocabulary(corpus, tmp_path, mode):
    """301 tokens over two ranks are 151 and 150: the loss is that of one rank."""
    two = losses(train(corpus, tmp_path, "--steps", "3", "--vocab_size", "301", "--mesh", "dp=1,tp=2",
                       "--dtype", "float64", mode))
    one = losses(train(corpus, tmp_path, "--steps", "3", "--vocab_size", "301", "--mesh", "dp=1,tp=1",
                       "--dtype", "float64", mode))
    np.testing.assert_allclose(two, one, rtol=1e-10)


def test_a_text_too_short_for_the_vocabulary_still_gets_a_sample(tmp_path):
    """Of 700 ids its tokenizer learns some 280; those that nobody can read are not written."""
    text = tmp_path / "short.txt"
    text.write_text("the cat sat on the mat. " * 40)
    run = train(text, tmp_path / "runs", "--steps", "2", "--vocab_size", "700", "--sample.tokens", "20",
                "--mesh", "dp=1,tp=1")
    assert (run / "sample.txt").is_file() and (run / "loss.svg").is_file()


def test_without_a_sample_none_is_announced(corpus, tmp_path, capsys):
    run = train(corpus, tmp_path, "--steps", "1", "--sample.tokens", "0", "--mesh", "dp=1,tp=1")
    assert not (run / "sample.txt").exists()
    assert f"checkpoint: {run}" in capsys.readouterr().out


def test_what_one_rank_alone_refuses_is_said(tmp_path, capsys, monkeypatch):
    """The others wait for it, and nobody else would say why the run has ended."""
    def run_rank(comm, config):
        raise InputError("a text", "none on this machine", "copy it")
    monkeypatch.setenv("MINIPD_RANKS", "4")
    monkeypatch.setattr(connect, "connect", lambda: SimpleNamespace(rank=1))
    monkeypatch.setattr("minipd.models.train.run_rank", run_rank)
    monkeypatch.setattr("minipd.models.train.GRACE", 0.0)
    assert main(["train", "--out", str(tmp_path), *TINY]) == 2
    assert capsys.readouterr().err == "minipd: expected a text, got none on this machine: copy it\n"


@pytest.mark.mpi
@pytest.mark.parametrize("mode", ["--no-cinn", COMPILED])
def test_mpi_ranks_train_like_simulated_ones(corpus, tmp_path, mode):
    simulated = losses(train(corpus, tmp_path / "sim", "--steps", "3", mode))
    done = subprocess.run([sys.executable, "-m", "minipd", "train", "--corpus", str(corpus), "--out",
                           str(tmp_path / "mpi"), *TINY, "--steps", "3", mode],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    np.testing.assert_allclose(losses(tmp_path / "mpi" / "0001"), simulated, rtol=1e-6)


@pytest.mark.mpi
@pytest.mark.parametrize("mode", ["--eager", COMPILED])
def test_ctrl_c_stops_all_ranks_with_a_checkpoint(corpus, tmp_path, mode):
    job = subprocess.Popen([sys.executable, "-m", "minipd", "train", "--corpus", str(corpus), "--out", str(tmp_path),
                            *TINY, "--steps", "100000", "--mesh", "dp=2,tp=1", mode], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    metrics = tmp_path / "0001" / "metrics.jsonl"
    deadline = time.monotonic() + 90
    while not (metrics.exists() and metrics.read_text().count("\n") > 2):
        assert job.poll() is None and time.monotonic() < deadline, job.communicate()[0]
        time.sleep(0.05)
    job.send_signal(signal.SIGINT)
    shown, _ = job.communicate(timeout=90)
    assert job.returncode == 0, shown
    last = read_metrics(tmp_path / "0001")[-1]["step"]
    assert (tmp_path / "0001" / "checkpoints" / f"step-{last:06d}" / "index.json").is_file()
    assert f"stopped after step {last}" in shown
