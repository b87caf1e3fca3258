"""Which rows of a table that is split by vocabulary are here."""

import numpy as np

import minipd.distributed as dist
from minipd.dist.placements import Shard
from minipd.dist.simulate import simulate
from minipd.nn import functional as F
from minipd.ops.creation import to_tensor
from minipd.ops.embedding import owned_rows
from tools.course.checking import check


def here(index, n, first, dtype="int64"):
    """For each number its position here, None where another shard has it.  (0 stands for those; any valid one may.)"""
    rows, owned = owned_rows(np, np.array(index, dtype), n, first)
    return [int(r) if o else None for r, o in zip(np.ravel(rows), np.ravel(owned), strict=True)]


def on(index, n, first):
    return f"numbers {index} where the shard has {n} rows from row {first} on; None: another shard's"


def test_all_here():
    check([0, 1, 2], lambda: here([0, 1, 2], 3, 0), on([0, 1, 2], 3, 0))


def test_positions_begin_at_the_first_row():
    check([0, 1], lambda: here([2, 3], 2, 2), on([2, 3], 2, 2))


def test_rows_behind_the_end():
    check([0, None, None], lambda: here([0, 2, 3], 2, 0), on([0, 2, 3], 2, 0))


def test_rows_before_the_beginning():
    """Python counts negative positions from the end: row 1 is not row -1 of this shard."""
    check([None, None, 0], lambda: here([0, 1, 2], 2, 2), on([0, 1, 2], 2, 2))


def test_a_shard_without_rows():
    check([None, None], lambda: here([0, 4], 0, 5), on([0, 4], 0, 5))


def test_positions_of_others_are_valid():
    """The kernel looks them up all the same, and throws the result away."""
    rows, _ = owned_rows(np, np.array([0, 9, 3, 4]), 2, 3)
    check([True] * 4, [bool(0 <= r < 2) for r in rows],
          f"numbers [0, 9, 3, 4] where the shard has 2 rows from row 3 on: "
          f"whether each of the positions {rows.tolist()} is one of its rows")


def test_small_types_of_numbers():
    """uint8 knows no negative numbers: 3 - 5 is 254."""
    for dtype in ("uint8", "int8", "int16", "int32"):
        check([None, 0, 1, None], lambda dtype=dtype: here([3, 5, 6, 7], 2, 5, dtype),
              f"{on([3, 5, 6, 7], 2, 5)}, {dtype}")
    check([None, None], lambda: here([0, 100], 50, 200, "int8"), on([0, 100], 50, 200) + ", int8")


def test_any_shape():
    rows, owned = owned_rows(np, np.array([[0, 3], [2, 1]]), 2, 2)
    check(((2, 2), [[False, True], [True, False]]), (rows.shape, owned.tolist()),
          "numbers [[0, 3], [2, 1]] where the shard has rows 2 and 3: the shape of the positions, and which are here")


def test_every_number_is_on_one_shard():
    n = 10
    for ways in (2, 3, 4):
        step = -(-n // ways)
        first = [min(i * step, n) for i in range(ways)]
        sizes = [min(step, n - f) for f in first]
        found = sum((owned_rows(np, np.arange(n), s, f)[1]).astype(int) for s, f in zip(sizes, first, strict=True))
        check([1] * n, found.tolist(), f"the numbers 0 to 9 over {ways} shards: how many shards have each")


def test_an_embedding_on_shards_equals_the_whole_one():
    table = np.arange(20.0).reshape(10, 2)
    ids = [0, 9, 3, 3]

    def looked_up(mesh):
        w = dist.shard_tensor(table, mesh, [Shard(0)], stop_gradient=False)
        y = F.embedding(to_tensor(ids), w)
        y.sum().backward()
        return y.numpy(), w.grad.numpy()
    gradient = np.zeros((10, 2))
    np.add.at(gradient, ids, 1.0)
    for ways in (2, 4):
        for rank in range(ways):
            check((table[ids], gradient), lambda ways=ways, rank=rank: simulate(f"tp={ways}", looked_up)[rank],
                  f"the rows {ids} of a table [10, 2] over {ways} ranks, and the gradient of their sum, on rank {rank}")
