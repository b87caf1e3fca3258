"""`make interop`: what one saves, the other runs or reads; how one trains on two ranks, the other does.  PADDLE_PYTHON
names a Python with the real Paddle."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import minipd
from minipd.ir.serialize import program_json, read_program
from tools.interop import checkpoint, distributed, text, training
from tools.interop.found import found_python
from tools.interop.models import NOT_HERE, calls_of, difference, models, save_all

HERE = Path(__file__).parent
#: the largest relative difference that counts as the same numbers, float32's rounding through some layers
SAME = 1e-5


def main() -> int:
    peer = found_python(HERE)
    if peer is None:
        print("interop: skipped, no Python with the real Paddle is here; name one with PADDLE_PYTHON=/path/to/python "
              "(a separate environment: pip install paddlepaddle)")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder, "minipd"), Path(folder, "paddle")
        ours.mkdir()
        theirs.mkdir()
        saved_here, saved_there = save_all(minipd, ours), asked(peer, "save", theirs)
        ran_there = asked(peer, "run", ours)
        rows = []
        for i, name in enumerate(models(minipd)):
            there = ran_there.get(name, {})
            rows.append((name, *(saved_here[name] or there.get(way, "did not run") for way in ("predicted", "loaded")),
                         saved_there.get(name, "did not run") or ran_here(theirs, i), again(theirs, i)))
    failures = report(rows)
    print()
    failures += text.main(peer, [])
    print()
    failures += training.main(peer)
    print()
    failures += distributed.main(peer)
    print()
    failures += checkpoint.main(peer)
    return min(failures, 1)


def asked(peer: str, what: str, folder: Path) -> dict[str, Any]:
    """What `peer.py` says."""
    done = subprocess.run([peer, str(HERE / "peer.py"), what, str(folder)], capture_output=True, text=True, check=False,
                          cwd=HERE)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        print(f"interop: {what} by Paddle ended early (status {done.returncode}):\n{done.stderr[-2000:]}",
              file=sys.stderr)
        return {}
    return json.loads(lines[-1].removeprefix("RESULT "))


def ran_here(folder: Path, i: int) -> Any:
    """Load, draw and run what Paddle has saved."""
    try:
        layer = minipd.jit.load(f"{folder}/{i}")
        minipd.viz.program(layer.program())
        worst = 0.0
        for inputs, outputs in calls_of(folder, i):
            out = layer(*map(minipd.to_tensor, inputs))
            got = [x.numpy() for x in (out if isinstance(out, list) else [out])]
            worst = max(worst, difference(got, outputs))
        return worst
    except Exception as error:          # one model that fails is one row of the table
        return f"{type(error).__name__}: {str(error)[:300]}"


def again(folder: Path, i: int) -> str:
    """Whether Paddle's file, read and written, is the same to the byte."""
    file = Path(folder, f"{i}.json")
    if not file.is_file():
        return "no file"
    text = file.read_text()
    saved = read_program(text, file.name)
    return "yes" if program_json(saved.program, saved.trainable) == text else "NO"


def report(rows: list[tuple]) -> int:
    """Print the table; returns 0 if all numbers are the same."""
    heads = ("model", "minipd → predictor", "minipd → jit.load", "Paddle → minipd", "file the same when written again")
    print("Largest relative difference of what is computed from files that the other has saved:\n")
    print("| " + " | ".join(heads) + " |")
    print("|" + " --- |" * len(heads))
    for row in rows:
        print("| " + " | ".join(f"{x:.1e}" if isinstance(x, float) else x.splitlines()[0][:60] for x in row) + " |")
    failures = [(row[0], head, x) for row in rows for head, x in zip(heads[1:], row[1:], strict=True)
                if x not in ("yes", NOT_HERE) and not (isinstance(x, float) and x <= SAME)]
    for name, head, what in failures:
        print(f"\nFAILED {name}, {head}: {what}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
