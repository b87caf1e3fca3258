"""What the executor's preparation gains on the default training step, what an instruction costs, what a step holds.

    python benchmarks/executor.py
    python benchmarks/executor.py --memory [--torch PYTHON]

Compared, in turns: the executor (one arena, arrays bound ahead), and a plain one that is written here: the same kernels
in the same order, each returning a new array, each array dropped when nothing reads it any more.  Then an instruction
on small arrays, beside the bare call of numpy that it makes, and beside the eager operator; and a run of a single
instruction.  The best of several rounds each.

`--memory`: what a training step holds at most, beside what any run must hold (`executor.liveness`) and beside torch.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from minipd.framework.environment import missing, rank_environment

if __name__ == "__main__" and (variables := missing(rank_environment(os.cpu_count() or 1))):
    # the import has loaded numpy, for which they come too late: start again, with one thread, as a rank has
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **variables})

import numpy as np
from executor_cases import ALL, BOUND, HOOK, SHAPES
from harness import Contender, markdown
from train_cases import batch_of, config_of

import minipd as paddle
from minipd.executor import Executor, Memory
from minipd.executor.kernel import select
from minipd.executor.kernel.lowering import kernel_key
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
            kernel = select(op.row, kernel_key(op)).kernel if op.row else None
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


def best_of(*functions):
    """The least seconds that each took, in turns."""
    times = []
    for _ in range(ROUNDS):
        times.append([])
        for function in functions:
            began = time.perf_counter()
            function()
            times[-1].append(time.perf_counter() - began)
    return [min(t) for t in zip(*times, strict=True)]


def instructions():
    """Lines of a table: microseconds of an instruction, of numpy's own call, of the eager operator."""
    lines = []
    for name, one, bare, shape in (
            ("tanh of 1 element", lambda x: tanh(x), lambda x, out: np.tanh(x, out), (1,)),
            ("tanh of 32", lambda x: tanh(x), lambda x, out: np.tanh(x, out), (4, 8)),
            ("multiply, 32", lambda x: x * x, lambda x, out: np.multiply(x, x, out), (4, 8)),
            ("matmul, 8x8", lambda x: x.matmul(x), lambda x, out: np.matmul(x, x, out), (8, 8))):
        def chain(x, one=one):
            for _ in range(LENGTH):
                x = one(x)
            return x
        x = np.full(shape, 0.125, np.float32)      # its product with itself is itself: nothing becomes subnormal
        executor = Executor(trace(chain, Meta(x.shape, x.dtype)).program)
        executor.run({"input_0": x})
        out, handle = np.empty_like(x), paddle.to_tensor(x)

        def bare_loop(x=x, out=out, bare=bare):
            for _ in range(LENGTH):
                bare(x, out)
        with paddle.no_grad():
            found = best_of(lambda executor=executor, x=x: executor.run({"input_0": x}), bare_loop,
                            lambda chain=chain, handle=handle: chain(handle))
        ours, numpy, eager = (t / LENGTH * 1e6 for t in found)
        lines.append([name, f"{ours:.2f}", f"{numpy:.2f}", f"{eager:.2f}", f"{eager / ours:.1f}"])
    return lines


def single():
    """Microseconds of a run of one instruction."""
    x = np.zeros(1, np.float32)
    executor = Executor(trace(tanh, Meta(x.shape, x.dtype)).program)

    def runs():
        for _ in range(LENGTH):
            executor.run({"input_0": x})
    return best_of(runs)[0] / LENGTH * 1e6


def memory(torch):
    """The table of what a training step holds at most."""
    file = Path(__file__).with_name("executor_cases.py")
    own = Contender("minipd", file, "minipd")
    peer = Contender("torch", file, "torch", torch) if torch else None
    for contender in filter(None, (own, peer)):
        contender.start()
    lines = []
    for case in SHAPES:
        hook, everything, bound = (own.ask(f"{case}, {what}") for what in (HOOK, ALL, BOUND))
        line = [case, *(f"{n / 1e6:.2f}" for n in (bound, hook)), f"{hook / bound:.2f}", f"{everything / 1e6:.2f}"]
        if peer is not None:
            theirs = peer.ask(case)
            line += [f"{theirs / 1e6:.2f}", f"{hook / theirs:.2f}", f"{everything / theirs:.2f}"]
        lines.append(line)
    for contender in filter(None, (own, peer)):
        contender.stop()
    heads = ["training step", "must be alive, MB", "held, MB", "held / must", "with what kernels need, MB"]
    print(markdown(heads + (["torch, MB", "held / torch", "all / torch"] if torch else []), lines))


def main():
    options = argparse.ArgumentParser(description="what running a program costs")
    options.add_argument("--memory", action="store_true", help="what a training step holds at most")
    options.add_argument("--torch", metavar="PYTHON", default=os.environ.get("MINIPD_TORCH"),
                         help="an interpreter that has torch, for --memory (or the variable MINIPD_TORCH)")
    given = options.parse_args()
    if given.memory:
        memory(given.torch)
        return
    seconds, peak, executor = training_step()
    plan = executor.plan()
    print(f"step: plain {seconds['plain'] * 1e3:.0f} ms, executor {seconds['executor'] * 1e3:.0f} ms, "
          f"plain / executor {seconds['plain'] / seconds['executor']:.2f}")
    print(f"peak {peak / 1e6:.1f} MB; alive at once {plan.bound / 1e6:.1f} MB; {len(plan.offsets)} buffers")
    heads = ["instruction", "executor, us", "numpy's call, us", "eager, us", "eager / executor"]
    print(markdown(heads, instructions()))
    print(f"a run of one instruction: {single():.1f} us")


if __name__ == "__main__":
    main()
