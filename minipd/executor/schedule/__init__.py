"""When instructions may run: what depends on what, which stream runs what, and what waits for what.

    dependencies    the graph of a program's instructions
    streams         queues of instructions, and the events between them
    clock           the schedule on a simulated clock: how long, what overlaps; deadlocks and races
    costs           how long an instruction takes, reckoned

All of it is data about a program, made without running it.
"""

from minipd.executor.schedule.clock import DeadlockError, RaceError, Timeline, simulate
from minipd.executor.schedule.costs import seconds_of
from minipd.executor.schedule.dependencies import Dependencies, Dependency, Instruction
from minipd.executor.schedule.streams import Command, Event, Schedule, schedule

__all__ = ["Command", "DeadlockError", "Dependencies", "Dependency", "Event", "Instruction", "RaceError", "Schedule",
           "Timeline", "schedule", "seconds_of", "simulate"]
