"""What the tests of `spawn` let ranks call: it must stand at the top level of a module."""

import os
import sys
import time

import minipd as paddle
import minipd.distributed as dist


def ranks_sum(start, how=""):
    """The sum over the ranks, and what this rank knows of itself."""
    dist.init_parallel_env()
    rank = dist.get_rank()
    x = paddle.to_tensor([rank + start])
    dist.all_reduce(x)
    if rank == 1 and how == "raise":
        raise KeyError("no such key")
    if rank == 1 and how == "kill":
        os.kill(os.getpid(), 9)
    if rank == 1 and how == "exit":
        os._exit(7)
    if rank == 1 and how == "leave":
        sys.exit(3)
    if how:
        dist.barrier()
    env = dist.ParallelEnv()
    return x.item(), env.rank, env.world_size, os.environ["PADDLE_TRAINER_ID"], len(env.trainer_endpoints)


def sleeps():
    time.sleep(60)


def paddles_name():
    import paddle as found
    return found.__name__


def spawns():
    dist.spawn(sleeps, nprocs=2)


def returns_what_cannot_travel():
    return lambda: None
