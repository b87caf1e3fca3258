"""Generated kernels: formulas that nobody wrote a kernel for, compiled, beside the same run eagerly, and torch.

    python benchmarks/cinn.py                                       minipd, eager and compiled
    python benchmarks/cinn.py --torch PYTHON                        ... and torch, eager and with torch.compile
    python benchmarks/cinn.py --threads 1 --only "RMSNorm" --torch PYTHON

Milliseconds, and in parentheses how many times as long as minipd's compiled function the others take.  Every contender
keeps the memory of dead arrays (`harness.KEEP_MEMORY`).  Figures: README.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness import KEEP_MEMORY, Contender, beside, compare


def main() -> None:
    options = argparse.ArgumentParser(description="composed formulas, compiled")
    options.add_argument("--torch", metavar="PYTHON", help="an interpreter that has torch")
    options.add_argument("--library", action="store_true", help="also torch's own operators, where it has them")
    options.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options.add_argument("--rounds", type=int, default=11)
    options.add_argument("--only", default="", help="a part of the names of the cases to run")
    given = options.parse_args()
    file = Path(__file__).with_name("cinn_cases.py")
    labels = ["minipd compiled", "minipd"]
    if given.torch:
        labels += ["torch", "torch compiled"]
        labels += ["torch library", "torch library compiled"] if given.library else []
    for threads in given.threads:
        contenders = [Contender(label, file, label, given.torch if label.startswith("torch") else sys.executable,
                                threads=threads, environment=KEEP_MEMORY) for label in labels]
        found = compare(contenders, given.rounds, seconds=0.1, wanted=given.only)
        print(f"{threads} thread{'s' * (threads > 1)}\n")
        print(beside(found, labels) + "\n", flush=True)


if __name__ == "__main__":
    main()
