"""Streams and events, as data: which queue runs what, and which waits for which.

A stream runs its instructions one after the other; two streams know nothing of each other but through events.  Where an
instruction depends on one of another stream, that one's stream *records* an event behind it, and this one's *waits* for
the event before it.

Only where it must: an instruction that is known to have ended, because its stream has waited for a later one before, or
for one that itself has waited for it, is not waited for again.  So the events are those of the transitive reduction of
the graph, in which the order within a stream counts as a dependency.

On a GPU a stream is a CUDA stream and an event a CUDA event, one to one (`executor.device`).  On a CPU, communication
has a thread of its own (`executor.overlap`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from minipd.executor.schedule.dependencies import Dependencies, Instruction

__all__ = ["Command", "Event", "Schedule", "schedule", "stream_of", "waits"]

COMPUTE, COMMUNICATION, TO_DEVICE, TO_HOST = "compute", "communication", "h2d", "d2h"


class Event(NamedTuple):
    """Recorded behind instruction `after`, on its stream.  waits: the instructions before which others wait for it."""

    number: int
    after: int
    waits: tuple[int, ...]


class Command(NamedTuple):
    """What a stream does next: "run" an instruction, "record" an event or "wait" for one, by its number."""

    kind: str
    number: int


@dataclass
class Schedule:
    """lanes: stream -> its commands, in order.  events: by number.  stream: of every instruction."""

    graph: Dependencies
    stream: list[str]
    events: list[Event]
    lanes: dict[str, list[Command]]

    def __str__(self) -> str:
        lines = []
        for name, commands in self.lanes.items():
            lines.append(f"stream {name}:")
            for kind, number in commands:
                what = repr(self.graph.instructions[number]) if kind == "run" else f"event {number}"
                lines.append(f"    {what}" if kind == "run" else f"    {kind} {what}")
        return "\n".join(lines) + "\n"


def stream_of(instruction: Instruction) -> str:
    """The stream of an instruction, by what it does."""
    name = instruction.item.op.name()
    if name in ("kernel.memcpy_h2d", "kernel.memcpy_d2h"):
        return TO_DEVICE if name.endswith("h2d") else TO_HOST
    return COMMUNICATION if instruction.communicates else COMPUTE


def schedule(graph: Dependencies, assign: Callable[[Instruction], str] = stream_of) -> Schedule:
    """Assign the instructions to streams, in the order of the program, with the events that they need.

    assign: instruction -> the name of its stream.
    """
    stream = [assign(i) for i in graph.instructions]
    waited = waits(graph, stream)
    waiting: dict[int, list[int]] = {}          # instruction -> those that wait for it
    for after, befores in enumerate(waited):
        for before in befores:
            waiting.setdefault(before, []).append(after)
    events = [Event(n, before, tuple(afters)) for n, (before, afters) in enumerate(sorted(waiting.items()))]
    number = {event.after: event.number for event in events}
    lanes: dict[str, list[Command]] = {name: [] for name in dict.fromkeys(stream)}
    for i, name in enumerate(stream):
        lane = lanes[name]
        lane += [Command("wait", number[before]) for before in waited[i]]
        lane.append(Command("run", i))
        if i in number:
            lane.append(Command("record", number[i]))
    return Schedule(graph, stream, events, lanes)


def waits(graph: Dependencies, stream: list[str]) -> list[list[int]]:
    """For every instruction, those of other streams that it must wait for, in order and no more than needed.

    stream: of every instruction; each runs its own in the order of the program.  Not needed is one that has surely
    ended: it comes before, or is waited for by, another one that this one waits for or that its stream has run.
    """
    # The clock of an instruction: for each stream, the last instruction there that has ended when this one begins.
    # Whoever has waited for an instruction has its clock too, and the instruction itself.
    clocks: list[dict[str, int]] = []
    last: dict[str, int] = {}
    waited: list[list[int]] = []
    for i, name in enumerate(stream):
        clock = dict(clocks[last[name]]) | {name: last[name]} if name in last else {}
        latest: dict[str, int] = {}             # in each other stream, the last one that this depends on
        for before in graph.upstream[i]:
            other = stream[before]
            if other != name and before > clock.get(other, -1):
                latest[other] = max(before, latest.get(other, -1))
        needed = sorted(b for b in latest.values() if not any(
            c is not b and clocks[c].get(stream[b], -1) >= b for c in latest.values()))
        for before in needed:
            clock[stream[before]] = before
            for other, seen in clocks[before].items():
                if seen > clock.get(other, -1):
                    clock[other] = seen
        waited.append(needed)
        clocks.append(clock)
        last[name] = i
    return waited
