"""The judgement over ranks that wait, without ranks: no false alarm at any moment, and no silence at the end."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from minipd.dist.comm.errors import DeadlockError, MismatchError, RankDiedError
from minipd.dist.comm.verdict import Alone, Status, Together, judge

CALL = ("barrier", None, None)


class Player:
    """A rank that follows a list of calls: ("send", to), ("recv", from), or the ranks of a group that meets."""

    def __init__(self, rank, program):
        self.rank, self.program, self.at = rank, program, 0
        self.sent, self.received, self.begun = Counter(), Counter(), Counter()

    def here(self):
        return self.program[self.at] if self.at < len(self.program) else None

    def arrive(self):
        """Say to the group that this rank has come, where it waits for one."""
        if self.here() and self.here()[0] not in ("send", "recv"):
            self.begun[self.here()] += 1

    def can_go_on(self, players):
        what = self.here()
        if what is None:
            return False
        if what[0] == "send":
            return True
        if what[0] == "recv":
            return players[what[1]].sent[self.rank] > self.received[what[1]]
        return all(players[r].begun[what] >= self.begun[what] for r in what)

    def go_on(self):
        what = self.here()
        if what[0] == "send":
            self.sent[what[1]] += 1
        elif what[0] == "recv":
            self.received[what[1]] += 1
        self.at += 1
        self.arrive()

    def status(self):
        what = self.here()
        if what is None:
            waits = None
        elif what[0] == "recv":
            waits = Alone(what[1], 0, self.received[what[1]])
        else:
            waits = Together(what, self.begun[what] - 1, CALL)
        calls = {(group, n): CALL for group, count in self.begun.items() for n in range(count)}
        return Status(self.rank, waits, "line 1", dict(self.begun), calls, {(r, 0): n for r, n in self.sent.items()})


def calls(rank, size):
    others = [r for r in range(size) if r != rank]
    groups = [g for g in [(0, 1), (1, 2), (0, 2), (0, 1, 2)] if rank in g and max(g) < size]
    return st.one_of(st.tuples(st.sampled_from(["send", "recv"]), st.sampled_from(others)), st.sampled_from(groups))


@given(st.data())
def test_an_alarm_is_never_false_and_never_missing(draw):
    size = draw.draw(st.sampled_from([2, 3]))
    players = [Player(r, draw.draw(st.lists(calls(r, size), max_size=6))) for r in range(size)]
    for p in players:
        p.arrive()
    statuses, alarm = {}, None
    while any(p.can_go_on(players) for p in players):
        p = draw.draw(st.sampled_from(players))
        if p.can_go_on(players) and draw.draw(st.booleans()):
            p.go_on()
        elif p.here() is None or p.here()[0] != "send":                 # where it waits it may speak
            statuses[p.rank] = p.status()
            if alarm is None and (alarm := judge(statuses, {})) is not None:
                before = [players[r].at for r in alarm[1]]
    if alarm is not None:                                               # those it names must never go on
        assert [players[r].at for r in alarm[1]] == before and all(players[r].here() for r in alarm[1])
    for p in players:
        statuses[p.rank] = p.status()
    stuck = tuple(p.rank for p in players if p.here() is not None)
    judged = judge(statuses, {})
    assert (judged is not None) == bool(stuck)
    if stuck:
        assert isinstance(judged[0], DeadlockError) and sorted(judged[1]) == list(stuck)


def status(rank, waits, begun=0, call=CALL):
    group = (0, 1)
    return Status(rank, waits, f"line {rank}", {group: begun}, {(group, n): call for n in range(begun)}, {})


def test_a_call_that_one_has_left_is_compared_all_the_same():
    other = ("all_gather_object", None, None)
    left = status(1, Alone(0, 0, 0), 3, other)
    error, concerned = judge({0: status(0, Together((0, 1), 1, CALL), 2), 1: left}, {})
    assert isinstance(error, MismatchError) and concerned == (0, 1)
    assert "rank 0 called barrier#1() of the group (0, 1), at line 0" in str(error)
    assert "rank 1 called all_gather_object#1() of the group (0, 1), at a line it has left" in str(error)


def test_calls_that_match_are_only_slow():
    waits = Together((0, 1), 1, CALL)
    assert judge({0: status(0, waits, 2), 1: status(1, waits, 2)}, {}) is None
    assert judge({0: status(0, waits, 2)}, {}) is None                  # rank 1 has said nothing: it is at work


def test_who_has_died_is_said_first():
    error, _ = judge({0: status(0, Together((0, 1), 0, CALL), 1)}, {1: "(process 7) has died"})
    assert isinstance(error, RankDiedError)
    assert str(error) == ("rank 1 (process 7) has died, so the others cannot go on:\n"
                          "  rank 0 waits in barrier#0() of the group (0, 1), at line 0")
