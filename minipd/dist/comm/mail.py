"""Messages between simulated ranks, from when they are sent until they are taken."""

from __future__ import annotations

from collections import Counter, deque
from typing import NamedTuple

import numpy as np

from minipd.dist.comm.baton import Baton
from minipd.dist.comm.calls import array_text
from minipd.dist.comm.errors import CommError
from minipd.dist.comm.faults import Delay, Duplicate, Lose, Plan, Truncate
from minipd.dist.comm.links import Clock
from minipd.dist.comm.record import Record

__all__: list[str] = []

#: Of a message: sender, receiver, tag.
Key = tuple[int, int, int]


class Letter(NamedTuple):
    """A message on its way: its number under its tag, the array, how many bytes of it come, and when."""

    number: int
    x: np.ndarray
    nbytes: int
    arrives: float


class Post:
    """The messages of a run: a mailbox for each (sender, receiver, tag).   Args: see `meeting.Room`."""

    def __init__(self, baton: Baton, records: list[Record] | None, plan: Plan | None, clock: Clock | None):
        self.baton, self.records, self.plan, self.clock = baton, records, plan, clock
        self._come: dict[Key, deque[Letter]] = {}       # and nobody asked yet
        self._awaited: dict[Key, deque[Mail]] = {}      # asked for, and not yet come
        self._late: deque[tuple[Key, Letter]] = deque() # come when nobody can do without
        self._lost: dict[Key, list[int]] = {}
        self._sent: Counter[Key] = Counter()
        self._taken: Counter[Key] = Counter()
        baton.idle = self.deliver_late

    def send(self, x: np.ndarray, src: int, dst: int, tag: int) -> None:
        key = (src, dst, tag)
        number = self._sent[key]
        self._sent[key] += 1
        faults = () if self.plan is None else self.plan.of_message(*key)
        delay = sum(fault.seconds for fault in faults if isinstance(fault, Delay))
        begin, end = (0.0, 0.0) if self.clock is None else self.clock.message(src, dst, x.nbytes, delay)
        if self.records is not None:
            self.records.append(Record("send", (src, dst), number, x.shape, x.dtype, {"tag": tag}, (x.nbytes,), begin,
                                       end))
        letters = [Letter(number, x.copy(), x.nbytes, end)]
        late = any(key == other for other, _ in self._late)
        for fault in faults:
            if isinstance(fault, Lose):
                self._lost.setdefault(key, []).append(number)
                letters = []
            elif isinstance(fault, Duplicate):
                letters = letters * 2
            elif isinstance(fault, Truncate):
                rest = x.nbytes // 2 if fault.nbytes is None else fault.nbytes
                letters = [letter._replace(nbytes=rest) for letter in letters]
            late = late or isinstance(fault, Delay)
        for letter in letters:
            if late:
                self._late.append((key, letter))
            else:
                self._deliver(key, letter)

    def expect(self, src: int, dst: int, tag: int) -> Mail:
        """The next message of the three, there or not."""
        key = (src, dst, tag)
        mail = Mail(self, key)
        if self._come.get(key):
            self._hand_over(key, self._come[key].popleft(), mail)
        else:
            self._awaited.setdefault(key, deque()).append(mail)
        return mail

    def lost(self, key: Key) -> list[int]:
        """Numbers of messages that never came."""
        return self._lost.get(key, [])

    def _deliver(self, key: Key, letter: Letter) -> None:
        if self._awaited.get(key):
            self._hand_over(key, letter, self._awaited[key].popleft())
        else:
            self._come.setdefault(key, deque()).append(letter)

    def _hand_over(self, key: Key, letter: Letter, mail: Mail) -> None:
        wanted = self._taken[key]
        self._taken[key] += 1
        src, dst, tag = key
        where = f"rank {dst} in recv(src={src}, tag={tag}): message #{letter.number}"
        if letter.number < wanted:
            raise self.baton.fail(CommError(f"{where} has come before; #{wanted} was expected"))
        if letter.number > wanted:
            raise self.baton.fail(CommError(f"{where} has come, but #{wanted} has not: it was lost"))
        if letter.nbytes != letter.x.nbytes:
            raise self.baton.fail(CommError(f"{where} has {letter.nbytes} bytes instead of the {letter.x.nbytes} of "
                                            f"{array_text(letter.x.shape, letter.x.dtype)}"))
        mail.arrive(letter)

    def deliver_late(self) -> bool:
        """No rank can run: let the first of the late messages come, if there is one."""
        if not self._late:
            return False
        self._deliver(*self._late.popleft())
        return True

    def left(self) -> list[str]:
        """What has come, and nobody has asked for."""
        return [f"{array_text(letter.x.shape, letter.x.dtype)} from rank {src} to rank {dst}, tag {tag}"
                for (src, dst, tag), letters in self._come.items() for letter in letters]

    def begun(self) -> list[str]:
        """Who waits for what has not come."""
        return [f"rank {dst} started what {mail.explain(dst)}" for (_, dst, _), mails in self._awaited.items()
                for mail in mails]


class Mail:
    """A message that a rank asks for."""

    __slots__ = ("here", "key", "letter", "post", "waiting")

    def __init__(self, post: Post, key: Key):
        self.post, self.key = post, key
        self.here = self.waiting = False
        self.letter: Letter | None = None

    def arrive(self, letter: Letter) -> None:
        self.letter, self.here = letter, True
        if self.waiting:
            self.post.baton.wake(self.key[1])

    def wait(self) -> None:
        if not self.here:
            self.waiting = True
            self.post.baton.wait(self.key[1], self)

    def result(self) -> np.ndarray:
        """The message, once."""
        assert self.letter is not None
        letter, self.letter = self.letter, None
        if self.post.clock is not None:
            self.post.clock.reach(self.key[1], letter.arrives)
        return letter.x

    def awaited(self) -> list[int]:
        return [self.key[0]]

    def explain(self, rank: int) -> str:
        src, _, tag = self.key
        lost = ", ".join(f"#{n}" for n in self.post.lost(self.key))
        return f"waits in recv(src={src}, tag={tag}) for a message from rank {src}" + (lost and f" (lost: {lost})")
