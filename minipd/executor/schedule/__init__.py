"""When instructions may run: what depends on what, which stream runs what, and what waits for what.

    dependencies    the graph of a program's instructions
    streams         queues of instructions, and the events between them
    clock           the schedule on a simulated clock: how long, what overlaps; deadlocks and races
    costs           how long an instruction takes, reckoned

All of it is data about a program, made without running it:

>>> from minipd.executor import Executor
>>> from minipd.framework import dtype as dtypes
>>> from minipd.framework.meta import Meta
>>> from minipd.ir.traced import trace
>>> program = trace(lambda x: x.exp() + x.tanh(), Meta((4,), dtypes.float32.np)).program
>>> graph = Executor(program).dependencies()
>>> print(graph.explain(graph.edges[-1]))
instruction 4: shadow_output output_0 must follow 3: add %3 (reads what it writes: %3)
>>> found = schedule(graph, lambda i: "side" if i.label.startswith("exp") else "main")
>>> print(found)
stream main:
    0: data input_0 %0
    record event 0
    2: tanh %2
    wait event 1
    3: add %3
    4: shadow_output output_0
stream side:
    wait event 0
    1: exp %1
    record event 1
<BLANKLINE>
>>> simulate(found, lambda i: 0.0 if i.label.startswith(("data", "shadow")) else 1.0).seconds
2.0
"""

from minipd.executor.schedule.clock import DeadlockError, RaceError, Timeline, simulate
from minipd.executor.schedule.costs import seconds_of
from minipd.executor.schedule.dependencies import Dependencies, Dependency, Instruction
from minipd.executor.schedule.streams import Command, Event, Schedule, schedule

__all__ = ["Command", "DeadlockError", "Dependencies", "Dependency", "Event", "Instruction", "RaceError", "Schedule",
           "Timeline", "schedule", "seconds_of", "simulate"]
