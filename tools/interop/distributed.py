"""Training on two ranks with the real Paddle and with minipd: the same script, the same losses.

    PADDLE_PYTHON=/path/to/python python -m tools.interop.distributed          (or `make interop`)

The scripts are those of tests/dist/guide, written for Paddle: after the same seed both sides draw the same weights.
Besides, each compares with one rank by itself.  These are the ones that Paddle can run on a CPU: there it has neither
reduce-scatter nor all-to-all, nor messages between meshes, so no pipeline, no sharding and no checkpoint.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.interop.found import found_python

HERE = Path(__file__).parent
SCRIPTS = HERE.parents[1] / "tests" / "dist" / "guide"
#: script, arguments, whether the losses that a rank prints are those of the whole batch with Paddle, too
RUNS = [("data_parallel", "", True), ("tensor_parallel", "", True), ("tensor_parallel", "static some", True),
        ("tensors", "some", False), ("layers", "", False), ("parallelized", "some", False)]
RANKS, SAME = 2, 1e-5


def main(peer: str) -> int:
    """Print a table; the number of scripts that fail or differ."""
    print(f"{f'on {RANKS} ranks':<27} | Paddle | minipd | largest difference of the losses")
    failures = 0
    for name, arguments, compares in RUNS:
        theirs, ours = by_paddle(peer, name, arguments), by_minipd(name, arguments)
        there, here = losses(theirs), losses(ours)
        if compares and (len(there) != RANKS or len(here) != RANKS):
            difference, right = "no losses", False
        elif compares:
            worst = max(abs(a - b) / abs(b) for r in there for a, b in zip(here[r], there[r], strict=True))
            difference, right = f"{worst:.1e} of {len(there[0])} steps", worst <= SAME
        else:
            difference, right = "", True
        ran = [done.returncode == 0 for done in (theirs, ours)]
        failures += not (right and all(ran))
        cells = [f"{'ran' if ok else 'FAILED':<6}" for ok in ran]
        print(f"{name + ' ' + arguments:<27} | {' | '.join(cells)} | {difference}{'' if right else '  DIFFERENT'}")
        for done, ok in zip((theirs, ours), ran, strict=True):
            if not ok:
                print(done.stdout[-1500:] + done.stderr[-1500:], file=sys.stderr)
    return failures


def by_paddle(peer: str, name: str, arguments: str) -> subprocess.CompletedProcess[str]:
    """Of all ranks, what they print."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([peer, "-m", "paddle.distributed.launch", f"--nproc_per_node={RANKS}",
                               f"--log_dir={folder}/log", str(HERE / "on_cpu.py"), str(SCRIPTS / f"{name}.py"),
                               *arguments.split()], cwd=folder, capture_output=True, text=True, check=False,
                              env={**os.environ, "OMP_NUM_THREADS": "1", "PADDLE_DISTRI_BACKEND": "gloo"})
        logs = sorted(Path(folder, "log").glob("workerlog.*"))
        done.stdout = "".join(log.read_text(errors="replace") for log in logs)
    return done


def by_minipd(name: str, arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "minipd.distributed.launch", "--as-paddle",
                           f"--nproc_per_node={RANKS}", str(SCRIPTS / f"{name}.py"), *arguments.split()],
                          capture_output=True, text=True, check=False)


def losses(done: subprocess.CompletedProcess[str]) -> dict[int, list[float]]:
    """By rank."""
    return {int(rank): ast.literal_eval(values)
            for rank, values in re.findall(r"^rank (\d+): losses (\[.*\])$", done.stdout, re.MULTILINE)}


if __name__ == "__main__":
    python = found_python(HERE)
    if python is None:
        print("skipped: no Python with the real Paddle is here; name one with PADDLE_PYTHON=/path/to/python")
    sys.exit(0 if python is None else min(main(python), 1))
