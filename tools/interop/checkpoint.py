"""Checkpoints of distributed states: the real Paddle reads what ranks of a mesh have saved here, and the other way
round.

    PADDLE_PYTHON=/path/to/python python -m tools.interop.checkpoint          (or `make interop`)
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import minipd as paddle
import minipd.distributed as dist
from minipd.dist.simulate import simulate
from tools.interop.found import found_python

HERE = Path(__file__).parent
R, S = dist.Replicate(), dist.Shard
RNG = np.random.default_rng(0)
#: what is saved, and how it is placed on a mesh of dp=2 and tp=2
STATE: dict[str, tuple[np.ndarray, list]] = {
    "rows and columns": (RNG.normal(size=(5, 7)), [S(0), S(1)]),
    "one dimension twice": (RNG.normal(size=(5, 2)), [S(0), S(0)]),
    "the other axis first": (RNG.normal(size=(5, 2)), [S(0, shard_order=1), S(0, shard_order=0)]),
    "in three parts": (RNG.normal(size=(12, 2)), [R, S(0, split_factor=3)]),
    "replicated": (RNG.integers(0, 99, (3,)), [R, R]),
    "0-D": (np.array(2.5), [R, R]),
}

#: what Paddle runs: read a checkpoint into tensors of these shapes, keep them as arrays; and save one of its own
PEER = """
import sys
import numpy as np, paddle, paddle.distributed as dist
folder, own = sys.argv[1:]
wanted = dict(np.load(folder + "/wanted.npz"))
state = {name: paddle.zeros(a.shape, str(a.dtype)) for name, a in wanted.items()}
dist.load_state_dict(state, folder)
np.savez(folder + "/got.npz", **{name: t.numpy() for name, t in state.items()})
dist.save_state_dict({name: paddle.to_tensor(a) for name, a in wanted.items()}, own)
"""


def main(peer: str) -> int:
    """Exchange checkpoints; returns 0 if all values are the same, bit by bit."""
    wanted = {name: a for name, (a, _) in STATE.items()}
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        simulate("dp=2,tp=2", lambda mesh: dist.save_state_dict(
            {name: dist.shard_tensor(a, mesh, placed) for name, (a, placed) in STATE.items()}, ours))
        np.savez(f"{ours}/wanted.npz", **wanted)        # type: ignore[arg-type]
        done = subprocess.run([peer, "-c", PEER, ours, theirs], capture_output=True, text=True, check=False, cwd=HERE)
        if done.returncode:
            print(f"interop: checkpoints by Paddle ended early (status {done.returncode}):\n{done.stderr[-2000:]}",
                  file=sys.stderr)
            return 1
        got = dict(np.load(f"{ours}/got.npz"))
        read = {name: t.numpy() for name, t in dist.load_merged_state_dict(theirs).items()}
        spread = simulate("tp=3", lambda mesh: _spread(mesh, theirs))
    print("Checkpoints, bit by bit:\n\n| tensor | 4 ranks → Paddle | Paddle → minipd | Paddle → 3 ranks |\n"
          "| --- | --- | --- | --- |")
    failures = 0
    for name, a in wanted.items():
        same = [x[name].dtype == a.dtype and x[name].tobytes() == a.tobytes() for x in (got, read, *spread)]
        print(f"| {name} | {_said(same[0])} | {_said(same[1])} | {_said(all(same[2:]))} |")
        failures += not all(same)
    return min(failures, 1)


def _spread(mesh: Any, folder: str) -> dict[str, np.ndarray]:
    state = {name: dist.shard_tensor(paddle.zeros(a.shape, str(a.dtype)), mesh, [S(0) if a.ndim else R])
             for name, (a, _) in STATE.items()}
    dist.load_state_dict(state, folder)
    return {name: t.numpy() for name, t in state.items()}


def _said(same: bool) -> str:
    return "the same" if same else "OTHERS"


if __name__ == "__main__":
    found = found_python(HERE)
    if found is None:
        print("skipped: no Python with the real Paddle is here; name one with PADDLE_PYTHON=/path/to/python")
    sys.exit(0 if found is None else main(found))
