"""Scripts that make the calls of Paddle's guide to automatic parallelism, written for Paddle, with `import paddle`.

Each compares by itself what it gets with what one rank gets.  They run on simulated ranks, and under the launcher, as a
user would start them; `make interop` lets the real Paddle run those that it can.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "guide"
ROOT = Path(__file__).parents[2]
TRAINING = ["data_parallel", "tensor_parallel", "pipeline_parallel", "hybrid_parallel", "global_input",
            "without_labels"]
OTHERS = ["tensors", "layers", "parallelized", "static_model", "checkpoint", "small_numbers"]
ALL = [(script, "eager") for script in TRAINING + OTHERS] + [(script, "static") for script in TRAINING]


def run(command, folder):
    done = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def simulated(ranks, scripts, folder):
    """Every script says of every rank that it is right."""
    commands = [f"{FOLDER / script}.py {mode} {folder}" for script, mode in scripts]
    out = run([FOLDER / "simulated.py", str(ranks), *commands], folder)
    parts = out.split("== ")[1:]
    assert len(parts) == len(scripts)
    for part in parts:
        assert {int(r) for r in re.findall(r"rank (\d+): ", part)} == set(range(ranks)), part


@pytest.mark.parametrize("ranks", [2, 4])
def test_on_simulated_ranks(ranks, tmp_path):
    simulated(ranks, ALL, tmp_path)


def test_ranks_in_any_order(tmp_path):
    simulated(6, [("tensors", "eager")], tmp_path)


def test_three_kinds_of_parallelism_on_eight_ranks(tmp_path):
    simulated(8, [("hybrid_parallel", "eager"), ("hybrid_parallel", "static")], tmp_path)


@pytest.mark.mpi
@pytest.mark.parametrize(("script", "mode"), [("hybrid_parallel", "static"), ("small_numbers", "eager")])
def test_under_the_launcher(script, mode, tmp_path):
    launched(2, script, mode, tmp_path)


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(("script", "mode"), ALL)
def test_all_under_the_launcher(ranks, script, mode, tmp_path):
    launched(ranks, script, mode, tmp_path)


@pytest.mark.mpi
@pytest.mark.long
def test_eight_ranks_under_the_launcher(tmp_path):
    launched(8, "hybrid_parallel", "eager", tmp_path)
    launched(8, "hybrid_parallel", "static", tmp_path)


def launched(ranks, script, mode, folder):
    out = run(["-m", "minipd.distributed.launch", "--as-paddle", "--nproc_per_node", str(ranks),
               FOLDER / f"{script}.py", mode, str(folder)], folder)
    assert {int(r) for r in re.findall(r"rank (\d+): ", out)} == set(range(ranks)), out
