"""Oracles: the numbering of an array by numpy, and Philox in Python's own integers.

A draw of the whole array as one row is checked against Philox first; then every other draw is read against that row:
which of its elements are these?
"""

import numpy as np
import pytest

from minipd.framework.philox import key_of, normal, uniform
from tools.course.checking import check

KEY = key_of(3, "lesson")


def word(n):
    """Word n of the stream that KEY names."""
    k0, k1, c2, c3 = (int(w) % 2**32 for w in (KEY[0], KEY[0] >> 32, KEY[1], KEY[1] >> 32))
    c0, c1 = n // 4 % 2**32, n // 4 >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 % 2**32, (p0 >> 32) ^ c3 ^ k1, p0 % 2**32
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return (c0, c1, c2, c3)[n % 4]


ROW = [(word(n) >> 8) / 2**24 for n in range(400)]


def numbers(shape, window=None):
    """Which elements of the whole array a draw of `shape` holds, by their global number."""
    def run():
        drawn = uniform(KEY, shape, window=window)
        return np.array([ROW.index(v) if v in ROW else -1 for v in drawn.ravel().tolist()], int).reshape(shape)
    return run


def part(whole, shape, offsets):
    """The same, by numpy."""
    every = np.arange(int(np.prod(whole))).reshape(whole)
    return every[tuple(slice(o, o + n) for o, n in zip(offsets, shape, strict=True))]


def test_a_whole_array():
    check([0, 1, 2, 3, 4], numbers((5,)), "element numbers of a draw of shape [5]")
    check([[0, 1, 2], [3, 4, 5]], numbers((2, 3)), "element numbers of a draw of shape [2, 3]")


def test_a_part_of_a_row():
    check([2, 3], numbers((2,), ((5,), (2,))), "element numbers of the window [2:4] of shape [5]")


def test_rows():
    check([[3, 4, 5]], numbers((1, 3), ((2, 3), (1, 0))), "element numbers of row 1 of shape [2, 3]")


def test_columns():
    check([[1, 2], [4, 5]], numbers((2, 2), ((2, 3), (0, 1))), "element numbers of the columns 1:3 of shape [2, 3]")


def test_a_block():
    check([[9, 10], [13, 14]], numbers((2, 2), ((4, 4), (2, 1))), "the block [2:4, 1:3] of shape [4, 4]")


def test_a_rank_that_holds_nothing():
    check((0, 3), numbers((0, 3), ((4, 3), (4, 0)))().shape, "the shape of an empty window of [4, 3]")
    check((4, 0), numbers((4, 0), ((4, 3), (0, 2)))().shape, "the shape of an empty window of [4, 3]")


def test_no_dimensions():
    check(0, numbers(()), "the number of the only element of a 0-D draw")


def test_every_window_at_random():
    rng = np.random.default_rng(0)
    for _ in range(150):
        whole = tuple(int(d) for d in rng.integers(1, 5, rng.integers(1, 5)))
        offsets = tuple(int(rng.integers(0, d)) for d in whole)
        shape = tuple(int(rng.integers(1, d - o + 1)) for d, o in zip(whole, offsets, strict=True))
        check(part(whole, shape, offsets), numbers(shape, (whole, offsets)),
              f"the window of shape {shape} at {offsets} in {whole}")


def test_four_ranks_hold_what_one_holds():
    whole = normal(KEY, (6, 8))
    quarters = [[normal(KEY, (3, 4), window=((6, 8), (r, c))) for c in (0, 4)] for r in (0, 3)]
    check(whole, np.block(quarters), "normals of shape [6, 8], whole and in four windows of a 2 x 2 mesh")


def test_large_windows():
    whole = uniform(KEY, (200, 300))
    check(True, bool((whole[50:, 100:] == uniform(KEY, (150, 200), window=((200, 300), (50, 100)))).all()),
          "the window [50:, 100:] of shape [200, 300] equals that part of the whole")


def test_far_into_a_large_array():
    first = 2**17 * (2**17 - 1) + 2**17 - 2         # a number that takes 35 bits
    check([[(word(n) >> 8) / 2**24 for n in (first, first + 1)]],
          lambda: uniform(KEY, (1, 2), window=((2**17, 2**17), (2**17 - 1, 2**17 - 2))),
          f"the last two elements, {first} and the next, of shape [2**17, 2**17]")


def test_windows_that_do_not_fit():
    for shape, window in (((2,), ((3,), (2,))), ((2,), ((3, 3), (0, 0))), ((2, 2), ((2, 2), (0, -1)))):
        with pytest.raises(ValueError):
            uniform(KEY, shape, window=window)
