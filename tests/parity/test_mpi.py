"""Parity on four MPI processes in float32, dp x tp and pp x tp."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.mpi
@pytest.mark.parametrize(("ranks", "ways"), [
    ("mpi_ranks", "eager static cinn"), ("mpi_pipeline_ranks", "eager static"),
    pytest.param("mpi_pipeline_ranks", "cinn", marks=pytest.mark.long),     # four processes compile all that there is
])
def test_four_mpi_ranks_equal_numpy(ranks, ways):
    done = subprocess.run([sys.executable, "-m", "minipd", "launch", "-n", "4", "-m", f"tests.parity.{ranks}",
                           *ways.split()], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"{way} equal on 4 ranks" in done.stdout for way in ways.split())
