"""What the executor's preparation gains on the default training step, and what an instruction costs.

    python benchmarks/executor.py

Compared, in turns: the executor (one arena, arrays bound ahead), and a plain one that is written here: the same kernels
in the same order, each returning a new array, each array dropped when nothing reads it any more.  Then one instruction
on arrays of one element, beside the bare call of numpy that it makes.  The best of several rounds each.
"""

from __future__ import annotations

import os
import sys
import time

from minipd.framework.environment import missing, rank_environment

if __name__ == "__main__" and (variables := missing(rank_environment(os.cpu_count() or 1))):
    # the import has loaded numpy, for which they come too late: start again, with one thread, as a rank has
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **variables})

import numpy as np
from train_cases import batch_of, config_of

from minipd.executor import Executor, Memory
from minipd.executor.calls import kernels_for
from minipd.framework.meta import Meta
from minipd.ir.program import Program
from minipd.ir.schema import op_attrs, result_values, tensor_operands
from minipd.ir.traced import trace
from minipd.models.build import build
from minipd.ops.elementary import tanh

ROUNDS, LENGTH = 9, 2000


class Plain:
    """Runs a program without branches: kernels that allocate."""

    def __init__(self, program: Program):
        self.calls = []
        ops = [op for op in program.global_block() if op.name() not in ("builtin.combine", "builtin.split")]
        reads = [tensor_operands(op) if op.row else op.operands_source() for op in ops]
        last = {v: i for i, values in enumerate(reads) for v in values}
        for i, (op, values) in enumerate(zip(ops, reads, strict=True)):
            kernel = kernels_for(op.row, values)[0] if op.row else None
            dead = [v for v in dict.fromkeys(values) if last[v] == i]
            results = result_values(op)
            self.calls.append((op, kernel, values, results, op_attrs(op) if op.row else {}, dead))

    def run(self, feed, scope):
        env, outputs, writes = {}, {}, {}
        for op, kernel, values, results, attrs, dead in self.calls:
            if kernel is not None:
                out = kernel(*[env[v] for v in values], **attrs)
                env.update(zip(results, out if op.row.multi else (np.asarray(out),), strict=True))
            elif op.name() == "pd_op.data":
                env[results[0]] = feed[op.attributes["name"].value]
            elif op.name() == "builtin.parameter":
                env[results[0]] = scope[op.attributes["parameter_name"].value]
            elif op.name() == "builtin.set_parameter":
                writes[op.attributes["parameter_name"].value] = env[values[0]]
            else:
                outputs[op.attributes["output_name"].value] = env[values[0]]
            for v in dead:
                del env[v]
        scope.update(writes)
        return outputs


def training_step():
    """Seconds of a step under both, and the arena."""
    config = config_of("default", way="static")
    step = build(config).step
    ours = step.train.executor
    runners = {"plain": Plain(ours.program).run, "executor": ours.run}
    ids, labels = batch_of(config)
    seconds = {name: [] for name in runners}
    for n in range(ROUNDS + 2):
        for name, run in runners.items():
            ours.run = run
            began = time.perf_counter()
            step(ids, labels)
            if n > 1:
                seconds[name].append(time.perf_counter() - began)
    memory = Memory()
    ours.run = lambda feed, scope: Executor.run(ours, feed, scope, memory)
    step(ids, labels)
    return {name: min(times) for name, times in seconds.items()}, memory.peak, ours


def instruction():
    """Microseconds of one instruction on one element, and of numpy's own call."""
    def chain(x):
        for _ in range(LENGTH):
            x = tanh(x)
        return x
    x = np.zeros(1, np.float32)
    executor = Executor(trace(chain, Meta(x.shape, x.dtype)).program)
    out, times = np.empty_like(x), []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        executor.run({"input_0": x})
        between = time.perf_counter()
        for _ in range(LENGTH):
            np.tanh(x, out=out)
        times.append((between - began, time.perf_counter() - between))
    return [min(t) / LENGTH * 1e6 for t in zip(*times, strict=True)]


if __name__ == "__main__":
    seconds, peak, executor = training_step()
    plan = executor.plan()
    print(f"step: plain {seconds['plain'] * 1e3:.0f} ms, executor {seconds['executor'] * 1e3:.0f} ms, "
          f"plain / executor {seconds['plain'] / seconds['executor']:.2f}")
    print(f"peak {peak / 1e6:.1f} MB; alive at once {plan.bound / 1e6:.1f} MB; {len(plan.offsets)} buffers")
    ours, bare = instruction()
    print(f"an instruction {ours:.2f} us, of which numpy's call is {bare:.2f} us")
