"""Training programs of Paddle's, run here: `python -m tools.interop.training`.

Each is the text of a program after `minimize`, with its gradients, its optimizer and its state by name.  Read and run
here from the same state, it has Paddle's losses.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from minipd.executor.executor import Executor
from minipd.ir.builder import Builder
from minipd.ir.paddle import from_paddle
from minipd.ir.parser import parse
from minipd.ir.program import Program

#: the largest relative difference of losses that counts as rounding
SAME = 1e-4


def main(peer: str) -> int:
    """The number of optimizers whose losses differ."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "training.json")
        subprocess.run([peer, "-m", "tools.interop.programs.training", str(path)], check=True, capture_output=True,
                       cwd=Path(__file__).parents[2])
        theirs = json.loads(path.read_text())
    print("| Paddle's program after minimize | its losses, run here |\n| --- | --- |")
    failures = 0
    feed = {name: np.asarray(theirs[name], "float32") for name in "xy"}
    for name, run in theirs["runs"].items():
        try:
            worst = float(np.max(np.abs(np.subtract(losses(run, feed), run["losses"])) / np.abs(run["losses"])))
            cell = f"{worst:.0e}"
        except Exception as error:          # one optimizer that fails is one row of the table
            worst, cell = np.inf, f"{type(error).__name__}: {str(error)[:200]}"
        failures += worst > SAME
        print(f"| {name} | {cell} |")
    return failures


def read(text: str) -> Program:
    return parse(text.strip() + "\n", "paddle")


def losses(run: dict[str, Any], feed: dict[str, np.ndarray]) -> list[float]:
    """The losses of as many steps as Paddle has made."""
    theirs = read(run["text"])
    i, j = run["place"]
    Builder(theirs.global_block()).output("loss", theirs.global_block().ops[i].result(j))
    program = from_paddle(theirs)
    known = program.parameters()
    startup = {op.attributes["parameter_name"].value for op in from_paddle(read(run["startup"])).walk()
               if op.name() == "builtin.set_parameter"}
    if startup != set(known):
        raise ValueError(f"expected a startup program that writes all state, got {sorted(startup ^ set(known))}")
    scope = {name: np.asarray(numbers, known[name].dtype).reshape(shape)
             for name, (numbers, shape) in run["state"].items()}
    executor = Executor(program)
    return [float(executor.run(feed, scope)["loss"]) for _ in run["losses"]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
