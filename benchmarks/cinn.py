"""Generated kernels: formulas that nobody wrote a kernel for, compiled, beside the same run eagerly, kernels written by
hand, and other frameworks.

    python benchmarks/cinn.py                                       minipd compiled and eager, and kernels by hand
    python benchmarks/cinn.py --torch PYTHON --jax PYTHON --paddle PYTHON
    python benchmarks/cinn.py --threads 1 --only "RMSNorm" --torch PYTHON

Milliseconds, and in parentheses how many times as long as minipd's compiled function the others take; then, for what
was measured, the goals and what was reached.  "minipd one program" asks for the gradients inside the compiled function.
Every contender keeps the memory of dead arrays (`harness.KEEP_MEMORY`).  Figures: README.md.  Whole models:
`cinn_models.py`, `train.py`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cinn_cases import FORMULAS
from cinn_peers import BOTH, FORWARD
from harness import KEEP_MEMORY, Contender, beside, compare, markdown

RMS, SMALL_RMS = "RMSNorm 4096x4096", "RMSNorm 2048x512"
#: (case, minipd's way, the other, how many times as long the other must take)
GOALS: list[tuple[str, str, str, float]] = [
    (f"{RMS}, {FORWARD}", "minipd compiled", "torch compiled", 1.15),
    (f"{RMS}, {FORWARD}", "minipd compiled", "paddle fused", 1.25),
    (f"{RMS}, {FORWARD}", "minipd compiled", "torch", 3.5),
    (f"{RMS}, {FORWARD}", "minipd compiled", "paddle", 10),
    (f"{RMS}, {FORWARD}", "minipd compiled", "minipd", 8),
    *((f"{name}, {BOTH}", "minipd compiled", other, least)
      for name, compiled in ((RMS, 1.5), (SMALL_RMS, 2))
      for other, least in (("torch compiled", compiled), ("jax", 2), ("torch", 5))),
    *((f"softmax 2048x4096, {way}", "minipd compiled", other, least)
      for way, library in ((FORWARD, 1.3), (BOTH, 1.15))
      for other, least in (("torch library", library), ("torch compiled", 2))),
    *((f"cross entropy 2048x{classes}, {BOTH}", "minipd one program", other, least)
      for classes, compiled in ((4096, 3), (32000, 2.2))
      for other, least in (("torch compiled", compiled), ("jax", 2))),
    (f"SwiGLU 2048x768, {BOTH}", "minipd compiled", "torch compiled", 1.5),
    (f"RoPE 8x256x6x48, {FORWARD}", "minipd compiled", "torch compiled", 1.5),
    *((f"AdamW {size}, {FORWARD}", "minipd compiled", "torch", 1.2) for size in ("15 M", "100 M")),
    *((f"{name}, {way}", "minipd compiled", "by hand", 0.9) for name in FORMULAS for way in (FORWARD, BOTH)
      if (name[:5], way) not in (("cross", BOTH), ("AdamW", BOTH))),
    *((f"cross entropy 2048x{classes}, {BOTH}", "minipd one program", "by hand", 0.9) for classes in (4096, 32000)),
]


def main() -> None:
    options = argparse.ArgumentParser(description="composed formulas, compiled")
    for peer in ("torch", "jax", "paddle"):
        options.add_argument(f"--{peer}", metavar="PYTHON", help=f"an interpreter that has {peer}")
    options.add_argument("--threads", type=int, nargs="+", default=[2])
    options.add_argument("--rounds", type=int, default=11)
    options.add_argument("--seconds", type=float, default=0.1, help="about how long a trial takes")
    options.add_argument("--only", default="", help="a part of the names of the cases to run")
    options.add_argument("--without", nargs="*", default=[], help="contenders to leave out")
    given = options.parse_args()
    labels = ["minipd compiled", "minipd one program", "minipd", "by hand"]
    labels += ["torch", "torch library", "torch compiled"] if given.torch else []
    labels += ["jax"] if given.jax else []
    labels += ["paddle", "paddle to_static", "paddle fused"] if given.paddle else []
    labels = [label for label in labels if label not in given.without]
    file = Path(__file__).with_name("cinn_cases.py")
    for threads in given.threads:
        contenders = [Contender(label, file, label, getattr(given, label.split()[0], None) or sys.executable,
                                threads=threads, environment=KEEP_MEMORY) for label in labels]
        found = compare(contenders, given.rounds, seconds=given.seconds, wanted=given.only)
        print(f"{threads} thread{'s' * (threads > 1)}\n")
        print(beside(found, labels) + "\n")
        print(reached(found) + "\n", flush=True)


def reached(found: dict[str, dict[str, float]]) -> str:
    """The goals of what was measured."""
    lines = []
    for case, own, other, least in GOALS:
        by = found.get(case, {})
        if own in by and other in by:
            times = by[other] / by[own]
            lines.append([case, own, other, f"{least:g}", f"{times:.2f}", "" if times >= least else "missed"])
    return markdown(["case", "of", "beside", "goal: times", "measured", ""], lines)


if __name__ == "__main__":
    main()
