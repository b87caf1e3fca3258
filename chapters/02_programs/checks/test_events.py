"""Oracles: the waits that are left in the transitive reduction, found the slow way; and the simulated clock, which
finds what begins too early."""

from types import SimpleNamespace

import numpy as np

from minipd.executor.schedule import Dependency, simulate
from minipd.executor.schedule.dependencies import Instruction
from minipd.executor.schedule.streams import schedule
from tools.course.checking import check


def graph_of(upstream):
    """A graph of instructions, from what each depends on."""
    instructions = [Instruction(i, None, f"op{i}") for i in range(len(upstream))]
    edges = [Dependency(b, i, "true", f"the result of op{b}") for i, before in enumerate(upstream) for b in before]
    downstream = [[i for i, before in enumerate(upstream) if b in before] for b in range(len(upstream))]
    return SimpleNamespace(instructions=instructions, edges=edges, upstream=[list(u) for u in upstream],
                           downstream=downstream)


def plan(upstream, streams):
    return schedule(graph_of(upstream), lambda i: streams[i.index])


def waited(upstream, streams):
    """For each instruction: which others its stream waits for, right before it."""
    def run():
        found = plan(upstream, streams)
        after = {event.number: event.after for event in found.events}
        waits = [[] for _ in upstream]
        for lane in found.lanes.values():
            pending = []
            for kind, number in lane:
                if kind == "wait":
                    pending.append(after[number])
                elif kind == "run":
                    waits[number], pending = sorted(pending), []
        return waits
    return run


def needed(upstream, streams):
    """Those of other streams that nothing else makes an instruction wait for."""
    direct = [set(before) for before in upstream]
    last = {}
    for i, name in enumerate(streams):
        if name in last:
            direct[i].add(last[name])
        last[name] = i
    before = []                 # everything that must have ended
    for i in range(len(upstream)):
        before.append(direct[i].union(*(before[b] for b in direct[i])))
    return [sorted(b for b in direct[i] if streams[b] != streams[i] and not any(b in before[c] for c in direct[i]))
            for i in range(len(upstream))]


def ends_well(upstream, streams):
    def run():
        try:
            simulate(plan(upstream, streams), lambda i: 1.0)
        except RuntimeError as error:
            return f"{type(error).__name__}: {error}"
        return "right"
    return run


def both(upstream, streams, waits, on):
    check(waits, waited(upstream, streams), f"{on}: for each, what it waits for")
    check("right", ends_well(upstream, streams), f"{on}: on the simulated clock")


def test_one_stream():
    both([[], [0], [0, 1]], "aaa", [[], [], []], "0, 1 and 2 on one stream; 1 reads 0, 2 reads 0 and 1")


def test_two_streams():
    both([[], [], [0, 1]], "aba", [[], [], [1]], "0 and 2 on stream a, 1 on b; 2 reads 0 and 1")


def test_nothing_to_wait_for():
    both([[], [], [0], [1]], "abab", [[], [], [], []], "0 and 2 on stream a, 1 and 3 on b; each reads its own")


def test_what_has_been_waited_for():
    both([[], [0], [0]], "abb", [[], [0], []], "0 on stream a, 1 and 2 on b; both read 0")


def test_a_later_one_of_a_stream_covers_the_earlier():
    both([[], [], [0, 1]], "aab", [[], [], [1]], "0 and 1 on stream a, 2 on b; 2 reads both")
    both([[], [], [1], [0]], "aabb", [[], [], [1], []], "0 and 1 on stream a; on b 2 reads 1, then 3 reads 0")


def test_an_earlier_wait_does_not_cover_the_later():
    both([[], [], [0], [1]], "aabb", [[], [], [0], [1]], "0 and 1 on stream a; on b 2 reads 0, then 3 reads 1")


def test_what_another_has_waited_for():
    both([[], [0], [0, 1]], "abc", [[], [0], [1]], "three streams; 1 reads 0; 2 reads 0 and 1")
    both([[], [0], [1], [0]], "abcc", [[], [0], [1], []],
         "0 on a, 1 on b, 2 and 3 on c; 1 reads 0, 2 reads 1, 3 reads 0")


def test_what_another_has_learnt_after_it_began():
    both([[], [], [0], [1, 0]], "abba", [[], [], [0], [1]],
         "0 and 3 on stream a, 1 and 2 on b; 2 reads 0; 3 reads 1 and 0")
    both([[], [], [0], [1, 0]], "abbc", [[], [], [0], [0, 1]],
         "0 on a, 1 and 2 on b, 3 on c; 2 reads 0; 3 reads 1 (which began before b has waited for 0) and 0")


def test_random_graphs():
    rng = np.random.default_rng(0)
    cases = []
    for _ in range(400):
        n = int(rng.integers(2, 14))
        upstream = [sorted(int(b) for b in rng.choice(i, rng.integers(0, min(i, 4) + 1), replace=False)) if i else []
                    for i in range(n)]
        cases.append((upstream, "".join(rng.choice(list("abcd"[:rng.integers(2, 5)]), n))))
    for upstream, streams in sorted(cases, key=lambda c: len(c[0])):
        both(upstream, streams, needed(upstream, streams),
             f"streams {streams!r}; what each depends on: {upstream}")
