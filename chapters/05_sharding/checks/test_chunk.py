"""The split rule for one axis: ceil(n / ways) elements each, until they run out."""

import random

import numpy as np

import minipd.distributed as dist
from minipd.dist.placements import Shard
from minipd.dist.sharding import ceil_chunk
from minipd.dist.simulate import simulate
from tools.course.checking import check


def chunks(n, ways):
    return [tuple(ceil_chunk(n, ways, i)) for i in range(ways)]


def on(n, ways):
    return f"{n} rows over {ways} ranks, as (size, offset) by rank"


def test_an_even_split():
    check([(2, 0), (2, 2)], lambda: chunks(4, 2), on(4, 2))


def test_all_of_it_on_one_rank():
    check([(5, 0)], lambda: chunks(5, 1), on(5, 1))


def test_the_last_chunk_is_short():
    check([(3, 0), (3, 3), (1, 6)], lambda: chunks(7, 3), on(7, 3))


def test_the_last_chunk_is_empty_and_stands_at_the_end():
    check([(2, 0), (2, 2), (1, 4), (0, 5)], lambda: chunks(5, 4), on(5, 4))


def test_fewer_rows_than_ranks():
    check([(1, 0), (0, 1), (0, 1)], lambda: chunks(1, 3), on(1, 3))


def test_no_rows():
    check([(0, 0), (0, 0)], lambda: chunks(0, 2), on(0, 2))


def test_every_row_has_one_owner():
    """Against Python's slices, which stop at the end by themselves."""
    random.seed(5)
    for _ in range(200):
        n, ways = random.randrange(40), random.randrange(1, 9)
        step = (n + ways - 1) // ways
        rows = [list(range(n))[i * step:(i + 1) * step] for i in range(ways)]
        check([(len(r), r[0] if r else n) for r in rows], lambda n=n, ways=ways: chunks(n, ways), on(n, ways))


def test_a_tensor_is_whole_again_after_a_round_trip():
    def there_and_back(mesh):
        x = dist.shard_tensor(np.arange(5, dtype="float32"), mesh, [Shard(0)])
        return x._local_value().shape[0], x.tolist()
    whole = [0.0, 1.0, 2.0, 3.0, 4.0]
    check([(2, whole), (2, whole), (1, whole), (0, whole)], lambda: simulate("tp=4", there_and_back),
          "arange(5) sharded over 4 ranks and gathered again, as (local rows, the whole) by rank")
