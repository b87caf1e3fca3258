"""Communication beside computation, on a CPU: collectives run in a thread of their own while the program goes on.

Which ones, and who waits for whom, the schedule says (`schedule.streams`): a collective goes to the stream
`communication` if the program has enough to do before it needs the result; an instruction that depends on one of that
stream waits for it.  A collective need not wait: it is handed over when all before it in the program is done.  The
thread takes them in order, so every rank communicates in the order of the program, and what is computed is the same,
bit by bit.

Only where the communicator allows it (`Communicator.threads`).  That of simulated ranks does not.  There exactly one
rank runs at a time, the one that has the baton, and hands it on where it waits.  A second thread of a rank would either
run without the baton, or wait for it while the first one has it: nothing would overlap, and the order, which is the
same in every run there, would be the operating system's.
"""

from __future__ import annotations

import contextvars
import functools
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from minipd.executor.binding import Binding
from minipd.executor.frame import Part, Steps
from minipd.executor.schedule.costs import seconds_of
from minipd.executor.schedule.dependencies import Dependencies, Instruction
from minipd.executor.schedule.streams import COMMUNICATION, COMPUTE, schedule
from minipd.ir.operation import user_error

__all__: list[str] = []

#: seconds of work, as `schedule.costs` reckons it, for which it pays to hand a collective over
WORTH = 5e-4


def streams_of(graph: Dependencies, worth: float = WORTH) -> list[str]:
    """The stream of every instruction: collectives that something can be done beside go to their own."""
    cost = seconds_of(graph)
    spent = [0.0]                               # of everything before an instruction, but for collectives
    for instruction in graph.instructions:
        spent.append(spent[-1] + (0.0 if instruction.communicates else cost(instruction)))
    streams = [COMPUTE] * len(graph.instructions)
    for i in reversed(range(len(streams))):
        item = graph.instructions[i].item
        if item.call is None or not item.call.comm:
            continue                            # a branch or a loop that communicates inside stays where it is
        needed = min((j for j in graph.downstream[i] if streams[j] == COMPUTE), default=len(streams))
        if spent[needed] - spent[i + 1] >= worth:
            streams[i] = COMMUNICATION
    return streams


def overlapping(bound: Binding) -> Overlapped | None:
    """The program of `bound` with its collectives in a thread; None if none of them has anything beside it."""
    if not any(item.call is not None and item.call.comm for item in bound.prepared.top):
        return None
    graph = Dependencies(bound.prepared, bound.layout)
    streams = streams_of(graph)
    return Overlapped(bound, graph, streams) if COMMUNICATION in streams else None


class Overlapped:
    """A program whose collectives run in a thread.

    steps: what the main thread does, in place of `bound.program`.
    """

    def __init__(self, bound: Binding, graph: Dependencies, streams: list[str]):
        self.bound, self.worker = bound, Worker()
        found = schedule(graph, lambda i: streams[i.index])
        handed = {i.index: n for n, i in enumerate((i for i in graph.instructions if streams[i.index] == COMMUNICATION),
                                                   1)}
        waits: dict[int, int] = {}              # instruction -> up to which collective it waits
        for event in found.events:
            for i in event.waits:
                if event.after in handed and i not in handed:
                    waits[i] = max(handed[event.after], waits.get(i, 0))
        read = {bound.slot(v) for i in handed for v in graph.instructions[i].item.reads()}
        #: emptied when all is done, for the thread may read them when the main thread has no use for them any more
        self.late = tuple({slot for part in bound.program.parts for slot in part.dead if slot in read})
        self.steps = self._steps(graph.instructions, handed, waits, read)

    def _steps(self, instructions: list[Instruction], handed: dict[int, int], waits: dict[int, int],
               read: set[int]) -> Steps:
        steps, frame = Steps(), self.bound.frame
        for instruction, part in zip(instructions, self.bound.program.parts, strict=True):
            i, dead = instruction.index, tuple(slot for slot in part.dead if slot not in read)
            if i in waits:
                steps.functions.append(functools.partial(self.worker.wait, waits[i]))
            if i not in handed:
                steps.add(part._replace(dead=dead), frame)
                continue
            empty = functools.partial(frame.empty, dead) if dead else None
            steps.add(Part(part.item, functools.partial(self.worker.submit, _noted(part, empty)), ()), frame)
        steps.functions.append(functools.partial(self.worker.wait, len(handed)))
        steps.functions.append(functools.partial(frame.empty, self.late))
        return steps

    def begin(self) -> Steps:
        """A run begins; returns what the main thread does."""
        self.worker.begin()
        return self.steps


def _noted(part: Part, empty: Callable | None) -> Callable[[], None]:
    """The job of the thread.  Its exception will leave from another instruction, so it takes its own note along."""
    def job() -> None:
        try:
            part.function()
        except Exception as error:
            error.add_note(user_error(part.item.origin, "while running this operation, beside others"))
            raise
        if empty is not None:
            empty()
    return job


class Worker:
    """A thread that does jobs in order.   submitted, finished: how many there were in this run."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[Any] = SimpleQueue()
        self.done: SimpleQueue[BaseException | None] = SimpleQueue()
        self.submitted = self.finished = 0
        threading.Thread(target=_work, args=(self.jobs, self.done), daemon=True, name="minipd communication").start()
        weakref.finalize(self, self.jobs.put, None)

    def begin(self) -> None:
        """Jobs of a run follow, in the context of the thread that calls this: the same rank."""
        self.submitted = self.finished = 0
        self.jobs.put(contextvars.copy_context())

    def submit(self, job: Callable[[], None]) -> None:
        """Hand over a job."""
        self.submitted += 1
        self.jobs.put(job)

    def wait(self, number: int) -> None:
        """Return when so many jobs of this run are done.

        Raises: what one of them raised.
        """
        while self.finished < number:
            error = self.done.get()
            self.finished += 1
            if error is not None:
                raise error

    @property
    def idle(self) -> bool:
        """Whether every job has been waited for."""
        return self.finished == self.submitted


def _work(jobs: SimpleQueue, done: SimpleQueue) -> None:
    context = contextvars.copy_context()
    while True:
        job = jobs.get()
        if job is None:
            return
        if isinstance(job, contextvars.Context):
            context = job
            continue
        try:
            context.run(job)
        except BaseException as error:      # the main thread raises it
            done.put(error)
        else:
            done.put(None)
        del job
