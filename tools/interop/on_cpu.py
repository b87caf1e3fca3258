"""Run a script with the real Paddle on CPU ranks: `python on_cpu.py SCRIPT arguments...`, under Paddle's launcher.

Its compiled mode asks for a CUDA device where it makes a group of ranks.  A first eager reshard makes groups that work
on a CPU (gloo); with the question left out, the mode uses them.
"""

import runpy
import sys
from pathlib import Path

import paddle
import paddle.distributed as dist
from paddle.distributed.auto_parallel.static.process_group import ProcessGroup


def instantiated(group):
    group._is_instantiate = True


if __name__ == "__main__":
    dist.init_parallel_env()
    everyone = dist.ProcessMesh(list(range(dist.get_world_size())))
    dist.reshard(dist.shard_tensor(paddle.ones([2]), everyone, [dist.Partial()]), everyone, [dist.Replicate()])
    ProcessGroup.instantiate = instantiated
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(Path(sys.argv[0]).resolve().parent))
    runpy.run_path(sys.argv[0], run_name="__main__")
