"""Parity on four MPI processes in float32."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.mpi
def test_four_mpi_ranks_equal_numpy():
    done = subprocess.run([sys.executable, "-m", "minipd", "launch", "-n", "4", "-m", "tests.parity.mpi_ranks"],
                          cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"{way} equal on 4 ranks" in done.stdout for way in ("eager", "static", "cinn"))
