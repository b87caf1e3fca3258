"""What an eager operator costs besides its arithmetic: µs per operator on 16 floats, beside numpy and Paddle.

    python benchmarks/dispatch.py                           minipd and numpy
    python benchmarks/dispatch.py --paddle PYTHON           ... and Paddle, from the environment of that interpreter

Rows without a word after the operator are operands without gradient; "taped" records the operator, and drops it;
"forward and backward" also runs its gradient and clears it again.  Chains are per operator.  Figures: README.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from dispatch_cases import OPS
from harness import Contender, compare, table


def main() -> None:
    options = argparse.ArgumentParser(description="the cost of an eager operator")
    options.add_argument("--paddle", metavar="PYTHON", help="an interpreter that has paddlepaddle")
    options.add_argument("--rounds", type=int, default=25)
    given = options.parse_args()
    file = Path(__file__).with_name("dispatch_cases.py")
    contenders = [Contender("numpy", file, "numpy"), Contender("minipd", file, "minipd", ops=OPS)]
    over = [("minipd", "numpy")]
    if given.paddle:
        contenders.append(Contender("paddle", file, "paddle", given.paddle, ops=OPS))
        over += [("minipd", "paddle")]
    found = compare(contenders, given.rounds)
    for operator in ("add", "multiply"):                    # numpy knows nothing of gradients: one figure for all rows
        for case, by in found.items():
            if case.startswith(operator):
                by["numpy"] = found[operator]["numpy"]
    print(table(found, [c.label for c in contenders], over))


if __name__ == "__main__":
    main()
