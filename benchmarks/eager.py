"""What an eager operator costs besides its arithmetic: µs per operator on 16 floats, beside numpy, Paddle and torch.

    python benchmarks/eager.py                                      minipd and numpy
    python benchmarks/eager.py --paddle PYTHON --torch PYTHON       ... and those, each from its own environment
    python benchmarks/eager.py --memory --torch PYTHON              what a training step of an MLP allocates

Rows without a word after the operator are operands without gradient; "taped" records the operator, and drops it;
"forward and backward" also runs its gradient and clears it again.  Chains are per operator.  Figures: README.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from eager_cases import OPS
from harness import Contender, compare, markdown, table


def main() -> None:
    options = argparse.ArgumentParser(description="the cost of an eager operator")
    options.add_argument("--paddle", metavar="PYTHON", help="an interpreter that has paddlepaddle")
    options.add_argument("--torch", metavar="PYTHON", help="an interpreter that has torch")
    options.add_argument("--rounds", type=int, default=25)
    options.add_argument("--case", default="", help="only the cases with this in their name")
    options.add_argument("--memory", action="store_true", help="bytes that a training step of an MLP allocates")
    given = options.parse_args()
    file = Path(__file__).with_name("memory_cases.py" if given.memory else "eager_cases.py")
    peers = {name: python for name in ("paddle", "torch") if (python := getattr(given, name))}
    if given.memory:
        memory([Contender(name, file, name, python) for name, python in {"minipd": "", **peers}.items()], given.case)
        return
    contenders = [Contender("numpy", file, "numpy"), Contender("minipd", file, "minipd", ops=OPS)]
    contenders += [Contender(name, file, name, python, ops=OPS) for name, python in peers.items()]
    found = compare(contenders, given.rounds, wanted=given.case)
    print(table(found, [c.label for c in contenders], [("minipd", c.label) for c in contenders if c.label != "minipd"]))


def memory(contenders: list[Contender], wanted: str) -> None:
    """Print the megabytes that each contender's step holds at most, and allocates in all."""
    found: dict[str, dict[str, float]] = {}
    for c in contenders:
        c.python = c.python or sys.executable
        c.start()
        try:
            for case in c.cases:
                if wanted in case:
                    found.setdefault(case, {})[c.label] = c.ask(case)
        finally:
            c.stop()
    labels = [c.label for c in contenders]
    print(markdown(["case", *(f"{label}, MB" for label in labels), *(f"minipd / {n}" for n in labels[1:])],
                   [[case, *(f"{by[n] / 2**20:.2f}" for n in labels),
                     *(f"{by['minipd'] / by[n]:.2f}" for n in labels[1:])] for case, by in found.items()]))


if __name__ == "__main__":
    main()
