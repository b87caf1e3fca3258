"""Oracle: a map of the arena, byte by byte, at every position; and how small it can be."""

import numpy as np

from minipd.executor.plan import ALIGNMENT, Interval, make_plan
from tools.course.checking import check


def plan(*intervals):
    """The offsets and the size of the arena, in units of 64 bytes."""
    def run():
        found = make_plan([Interval(s, e, n) for s, e, n in intervals])
        return [o // ALIGNMENT for o in found.offsets], found.size // ALIGNMENT
    return run


def overlap(intervals, offsets):
    """The first two buffers that are alive at once and share a byte, or None."""
    for at in range(max(i.end for i in intervals) + 1):
        owner = {}
        for n, (i, offset) in enumerate(zip(intervals, offsets, strict=True)):
            if i.start <= at <= i.end:
                for byte in range(offset // 64, (offset + i.size + 63) // 64):
                    if byte in owner:
                        return owner[byte], n
                    owner[byte] = n
    return None


def least(intervals):
    """The most bytes that are alive at one position: no arena can be smaller."""
    return max(sum(-(-i.size // 64) * 64 for i in intervals if i.start <= at <= i.end)
               for at in range(max(i.end for i in intervals) + 1))


def test_nothing_and_one():
    check(([], 0), plan(), "no buffers")
    check(([0], 2), plan((0, 3, 128)), "one buffer of 128 bytes (offsets and size in units of 64)")


def test_one_after_the_other():
    check(([0, 0], 2), plan((0, 1, 128), (2, 3, 128)), "two buffers of 128 bytes that live at 0..1 and at 2..3")


def test_side_by_side():
    def f():
        offsets, size = plan((0, 2, 128), (1, 3, 64))()
        return sorted(offsets), size
    check(([0, 2], 3), f, "buffers of 128 and 64 bytes, which live at 0..2 and at 1..3")


def test_the_later_one_is_placed_first():
    def f():
        offsets, size = plan((0, 2, 64), (1, 3, 128))()
        return overlap([Interval(0, 2, 64), Interval(1, 3, 128)], [o * ALIGNMENT for o in offsets]), size
    check((None, 3), f, "buffers of 64 and 128 bytes, which live at 0..2 and at 1..3; the larger is placed first: "
                        "which two overlap, and the arena")


def test_a_common_position_is_enough():
    """An operation reads the one while it writes the other."""
    check(([0, 1, 0], 2), plan((0, 1, 64), (1, 2, 64), (2, 3, 64)),
          "three buffers of 64 bytes that live at 0..1, 1..2 and 2..3: both ends are included")


def test_sizes_are_rounded_up():
    def f():
        return [o % ALIGNMENT for o in make_plan([Interval(0, 1, 1), Interval(0, 1, 65), Interval(0, 1, 64)]).offsets]
    check([0, 0, 0], f, "offset modulo 64 of buffers of 1, 65 and 64 bytes")
    check(4, lambda: make_plan([Interval(0, 1, 1), Interval(0, 1, 65), Interval(0, 1, 64)]).size // ALIGNMENT,
          "the arena of buffers of 1, 65 and 64 bytes that live at once, in units of 64")


def test_each_offset_belongs_to_its_buffer():
    intervals = [Interval(0, 1, 64), Interval(0, 1, 192), Interval(0, 1, 128)]

    def f():
        found = make_plan(intervals)
        top = max(o + i.size for o, i in zip(found.offsets, intervals, strict=True))
        return overlap(intervals, found.offsets), top, found.size
    check((None, 384, 384), f, "buffers of 64, 192 and 128 bytes that live at once: which two overlap, where the last "
                               "one ends, and the arena")


def test_a_gap_that_is_none():
    """The second and the third lie where the first one was, which reaches further than both."""
    intervals = [(0, 4, 320), (5, 9, 128), (5, 9, 128), (0, 9, 64)]

    def f():
        offsets, size = plan(*intervals)()
        return overlap([Interval(*i) for i in intervals], [64 * o for o in offsets]), size
    check((None, 6), f, "buffers of 320, 128, 128, 64 bytes at 0..4, 5..9, 5..9, 0..9: which two overlap, and the "
                        "arena in units of 64")


def test_no_bytes():
    check(1, lambda: make_plan([Interval(0, 5, 0), Interval(0, 5, 64)]).size // ALIGNMENT,
          "the arena of a buffer without bytes, and one of 64, in units of 64")


def test_a_gap_in_the_middle():
    intervals = [Interval(0, 9, 256), Interval(0, 4, 192), Interval(0, 9, 128), Interval(5, 9, 64), Interval(5, 9, 128)]
    check(576, lambda: make_plan(intervals).size,
          "buffers of 256, 192, 128 bytes, of which the second ends at 4; then two of 64 and 128 fit into its place")


def test_the_gap_that_fits_best():
    intervals = [Interval(0, 4, 128), Interval(0, 9, 640), Interval(0, 4, 64), Interval(0, 9, 576), Interval(5, 9, 64),
                 Interval(5, 9, 128)]
    check(1408, lambda: make_plan(intervals).size,
          "buffers of 128, 640, 64, 576 bytes; the first and the third end at 4; then come 64 and 128 bytes")


def test_nested_lifetimes():
    intervals = [Interval(i, 20 - i, 64 * (i + 1)) for i in range(10)]
    check(least(intervals), lambda: make_plan(intervals).size, "ten buffers of growing size, each alive within the "
                                                                    "life of the one before")


def test_random_buffers():
    rng = np.random.default_rng(0)
    waste = []
    for _ in range(60):
        starts, lengths, sizes = rng.integers(0, 30, 40), rng.integers(0, 8, 40), rng.integers(0, 1500, 40)
        intervals = [Interval(int(s), int(s + n), int(b)) for s, n, b in zip(starts, lengths, sizes, strict=True)]
        found = make_plan(intervals)
        check(None, overlap(intervals, found.offsets), f"numbers of two buffers that overlap, among {intervals}")
        top = max(o + i.size for o, i in zip(found.offsets, intervals, strict=True))
        check(True, found.size >= top, f"does the arena of {found.size} bytes hold a buffer that ends at {top}?")
        waste.append(found.size / least(intervals))
    check(True, bool(np.mean(waste) < 1.15), f"is the arena on average less than 15 % larger than the least? It is "
                                             f"{100 * (np.mean(waste) - 1):.0f} % larger")
