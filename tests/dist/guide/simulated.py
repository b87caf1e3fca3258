"""Run scripts on simulated ranks, in one process: `python simulated.py RANKS "SCRIPT arguments" ...`.

Each rank runs a script from its first line to its last, with a context of its own.
"""

import runpy
import sys
from pathlib import Path

import minipd
from minipd.dist.simulate import simulate
from minipd.framework.rank import current


def run(ranks: int, script: str, *arguments: str) -> None:
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))

    def rank(_: object) -> None:
        current().rng.draw_as_paddle()
        runpy.run_path(script, run_name="__main__")
    sys.modules.pop("common", None)             # it reads the arguments
    simulate(f"rank={ranks}", rank)


if __name__ == "__main__":
    minipd.install_as_paddle()
    count, *commands = sys.argv[1:]
    for command in commands:
        print(f"== {command}", flush=True)
        run(int(count), *command.split())
