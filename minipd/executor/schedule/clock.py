"""A schedule on a simulated clock: how long it takes, what overlaps, and whether it is right.

Every stream runs its commands in order; an instruction takes the time that a cost function says, a record takes none,
a wait lasts until its event has been recorded.  Two things can be wrong with a schedule:

*A deadlock.*  No stream can go on: each waits for an event that only another one's rest would record.

*A race.*  An instruction depends on another, and no chain of events and streams makes it come after.  That is asked of
the schedule itself, not of the times that the costs happened to give: what ran in the right order by luck is an error
as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from minipd.executor.schedule.costs import seconds_of
from minipd.executor.schedule.dependencies import Dependency, Instruction
from minipd.executor.schedule.streams import Command, Schedule

__all__ = ["DeadlockError", "RaceError", "Slot", "Timeline", "simulate"]


class DeadlockError(RuntimeError):
    """Streams wait for each other for ever."""


class RaceError(RuntimeError):
    """An instruction may begin before one that it depends on has ended.  dependency: which."""

    def __init__(self, message: str, dependency: Dependency):
        super().__init__(message)
        self.dependency = dependency


class Slot(NamedTuple):
    """An instruction on the clock: seconds from the start of the run."""

    stream: str
    instruction: Instruction
    start: float
    end: float


@dataclass
class Timeline:
    """What ran when.  slots: in the order in which they began."""

    slots: list[Slot]

    @property
    def seconds(self) -> float:
        """From the first start to the last end."""
        return max((s.end for s in self.slots), default=0.0) - min((s.start for s in self.slots), default=0.0)

    def busy(self, stream: str) -> float:
        """How long a stream has been at work."""
        return sum(s.end - s.start for s in self.slots if s.stream == stream)

    def overlapped(self) -> float:
        """How long at least two streams were at work."""
        changes = sorted([(s.start, 1) for s in self.slots if s.end > s.start]
                         + [(s.end, -1) for s in self.slots if s.end > s.start])
        total, at_work, since = 0.0, 0, 0.0
        for at, change in changes:
            if at_work > 1:
                total += at - since
            at_work, since = at_work + change, at
        return total


def simulate(schedule: Schedule, cost: Callable[[Instruction], float] | None = None) -> Timeline:
    """Run a schedule on the clock.

    cost: seconds that an instruction takes; those of `seconds_of` if not given.
    Raises: DeadlockError, RaceError.
    """
    cost = cost or seconds_of(schedule.graph)
    return _Simulation(schedule).run(cost)


class _Simulation:
    def __init__(self, schedule: Schedule):
        self.schedule, self.graph = schedule, schedule.graph
        self.at = dict.fromkeys(schedule.lanes, 0)              # stream -> its next command
        self.now = dict.fromkeys(schedule.lanes, 0.0)
        self.known: dict[str, set[int]] = {name: set() for name in schedule.lanes}      # what has ended, as it sees it
        self.recorded: dict[int, tuple[float, set[int]]] = {}
        self.seen: dict[int, set[int]] = {}                     # instruction -> what had surely ended when it began
        self.slots: list[Slot] = []

    def run(self, cost: Callable[[Instruction], float]) -> Timeline:
        moved = True
        while moved:
            moved = False
            for name, lane in self.schedule.lanes.items():
                while self.at[name] < len(lane) and self.step(name, lane[self.at[name]], cost):
                    self.at[name] += 1
                    moved = True
        self.check_finished()
        self.check_races()
        return Timeline(sorted(self.slots, key=lambda s: (s.start, s.instruction.index)))

    def step(self, name: str, command: Command, cost: Callable[[Instruction], float]) -> bool:
        """Carry out a command; False if it has to wait."""
        if command.kind == "wait":
            if command.number not in self.recorded:
                return False
            when, known = self.recorded[command.number]
            self.now[name] = max(self.now[name], when)
            self.known[name] |= known
        elif command.kind == "record":
            self.recorded[command.number] = self.now[name], set(self.known[name])
        else:
            instruction = self.graph.instructions[command.number]
            start, end = self.now[name], self.now[name] + cost(instruction)
            self.slots.append(Slot(name, instruction, start, end))
            self.seen[command.number] = set(self.known[name])
            self.known[name].add(command.number)
            self.now[name] = end
        return True

    def check_finished(self) -> None:
        stuck = {name: lane[self.at[name]] for name, lane in self.schedule.lanes.items() if self.at[name] < len(lane)}
        if not stuck:
            return
        told = []
        for name, command in stuck.items():
            recording = Command("record", command.number)
            by = next((other for other, lane in self.schedule.lanes.items() if recording in lane), None)
            after = next((repr(self.graph.instructions[c.number]) for c in self.schedule.lanes[name][self.at[name]:]
                          if c.kind == "run"), "its end")
            told.append(f"stream {name} waits, before {after}, for event {command.number}, which "
                        + (f"stream {by} would record" if by is not None else "no stream records"))
        raise DeadlockError("deadlock: " + "; ".join(told))

    def check_races(self) -> None:
        for edge in self.graph.edges:
            before, after = (self.graph.instructions[i] for i in edge[:2])
            for instruction in (before, after):
                if instruction.index not in self.seen:
                    raise RaceError(f"schedule: no stream runs instruction {instruction!r}", edge)
            if edge.before not in self.seen[edge.after]:
                verb = {"true": "reads", "anti": "writes over", "output": "writes over"}.get(edge.kind, "follows")
                done = {"true": "writes it", "anti": "reads it", "output": "writes it"}.get(edge.kind, "comes first")
                raise RaceError(
                    f"race: instruction {after!r} (stream {self.schedule.stream[edge.after]}) {verb} {edge.on}, and "
                    f"nothing makes it wait for instruction {before!r} (stream {self.schedule.stream[edge.before]}), "
                    f"which {done}; record an event behind that one, and wait for it", edge)
