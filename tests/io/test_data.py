"""Datasets, samplers, and the DataLoader."""

import numpy as np
import pytest

import minipd as paddle
from minipd import io
from minipd.framework.context import RankContext
from minipd.framework.rank import current, enter, leave


class Squares(io.Dataset):
    def __init__(self, n=10):
        self.n = n

    def __getitem__(self, i):
        return np.float32(i), i * i

    def __len__(self):
        return self.n


class Stream(io.IterableDataset):
    def __iter__(self):
        return iter(range(5))


# -------------------------------------------------------------------------------------------------------- samplers
def test_a_random_order_is_a_function_of_seed_and_epoch():
    paddle.seed(5)
    sampler = io.RandomSampler(range(100))
    epochs = [list(sampler) for _ in range(3)]
    assert all(sorted(e) == list(range(100)) for e in epochs) and epochs[0] != epochs[1] != epochs[2]
    paddle.rand([3])                                    # draws of others change nothing
    again = io.RandomSampler(range(100))
    again.set_epoch(2)
    assert list(again) == epochs[2]
    paddle.seed(6)
    assert list(io.RandomSampler(range(100))) != epochs[0]


def test_every_order_is_as_likely():
    """6 orders of 3 numbers in 3000 epochs: 500 each, give or take 5 standard deviations."""
    sampler = io.RandomSampler(range(3))
    counts = {}
    for _ in range(3000):
        order = tuple(sampler)
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6 and all(abs(c - 500) < 5 * np.sqrt(3000 / 6 * 5 / 6) for c in counts.values())


def test_some_samples():
    assert len(set(io.RandomSampler(range(10), num_samples=4))) == 4
    drawn = list(io.RandomSampler(range(3), replacement=True, num_samples=50))
    assert len(drawn) == 50 and set(drawn) == {0, 1, 2}
    assert list(io.RandomSampler(range(9), num_samples=2, generator=iter([7, 8, 9]))) == [7, 8]
    with pytest.raises(ValueError, match="expected num_samples in 1 .. 3 .more only with replacement., got 4"):
        io.RandomSampler(range(3), num_samples=4)


def test_some_of_the_samples_in_a_random_order():
    paddle.seed(5)
    sampler = io.SubsetRandomSampler([3, 1, 4, 15, 9])
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == [1, 3, 4, 9, 15] and first != second and len(sampler) == 5
    sampler.set_epoch(0)
    assert list(sampler) == first
    with pytest.raises(ValueError, match="expected at least one sample number, got none"):
        io.SubsetRandomSampler([])


@pytest.mark.parametrize("replacement", [True, False])
def test_weights_are_probabilities(replacement):
    """The first of the draws is number i with probability weight i / 10, give or take 5 standard deviations."""
    weights = [1, 0, 3, 6]
    sampler = io.WeightedRandomSampler(weights, 3, replacement)
    firsts = np.zeros(4)
    for _ in range(2000):
        drawn = list(sampler)
        assert len(drawn) == 3 and (replacement or len(set(drawn)) == 3)
        firsts[drawn[0]] += 1
    p = np.array(weights) / 10
    assert (abs(firsts - 2000 * p) <= 5 * np.sqrt(2000 * p * (1 - p))).all() and firsts[1] == 0
    for options, said in [(([1, -1], 1), "finite weights >= 0"), (([0, 0], 1), "one of them positive"),
                          (([1, 1], 0), "num_samples to be a positive int"),
                          (([1, 0, 1], 3, False), "at most 2 samples without replacement")]:
        with pytest.raises(ValueError, match=said):
            io.WeightedRandomSampler(*options)


def test_batches():
    assert list(io.BatchSampler(Squares(7), batch_size=3)) == [[0, 1, 2], [3, 4, 5], [6]]
    dropping = io.BatchSampler(Squares(7), batch_size=3, drop_last=True)
    assert list(dropping) == [[0, 1, 2], [3, 4, 5]] and len(dropping) == 2
    assert list(io.BatchSampler(sampler=[5, 3, 1], batch_size=2)) == [[5, 3], [1]]
    shuffled = list(io.BatchSampler(Squares(7), shuffle=True, batch_size=3))
    assert sorted(sum(shuffled, [])) == list(range(7)) and len(shuffled) == 3
    for options, said in [({}, "a dataset or a sampler, got both or neither"),
                          ({"sampler": [1], "shuffle": True}, "a sampler decides the order itself"),
                          ({"sampler": [1], "batch_size": 0}, "expected batch_size to be a positive int, got 0")]:
        with pytest.raises(ValueError, match=said):
            io.BatchSampler(**options)


@pytest.mark.parametrize("n,batch_size,ranks", [(7, 2, 2), (10, 3, 4), (8, 2, 2), (3, 2, 4), (1, 1, 3), (0, 2, 2)])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("drop_last", [False, True])
def test_ranks_share_the_batches_of_one(n, batch_size, ranks, shuffle, drop_last):
    paddle.seed(1)
    everyone = [io.DistributedBatchSampler(range(n), batch_size, ranks, r, shuffle, drop_last) for r in range(ranks)]
    one = io.DistributedBatchSampler(range(n), batch_size * ranks, 1, 0, shuffle, False)
    whole = sum(one, [])
    whole += (whole * ranks)[:-len(whole) % ranks]      # the first ones again, up to a multiple of the ranks
    parts = [list(s) for s in everyone]
    assert {len(p) for p in parts} == {len(everyone[0])}
    assert all(len(batch) == batch_size for p in parts for batch in p[:-1])
    joined = sum((sum(step, []) for step in zip(*parts, strict=True)), [])
    kept = len(whole) // (batch_size * ranks) * (batch_size * ranks) if drop_last else len(whole)
    assert joined == whole[:kept]
    for s in everyone:
        s.set_epoch(0)
    assert [list(s) for s in everyone] == parts


def test_a_rank_knows_itself():
    token = enter(RankContext(rank=1, world_size=2))
    try:
        assert list(io.DistributedBatchSampler(range(4), 1)) == [[1], [3]]
    finally:
        leave(token)
    with pytest.raises(ValueError, match="expected a rank in 0 .. num_replicas - 1, got rank 2 of 2"):
        io.DistributedBatchSampler(range(4), 1, 2, 2)


# -------------------------------------------------------------------------------------------------------- datasets
def test_tensor_dataset():
    data = io.TensorDataset([paddle.arange(6).reshape([3, 2]), np.array([1.0, 2.0, 3.0])])
    assert len(data) == 3 and data[1][0].tolist() == [2, 3] and data[1][1] == 2.0
    with pytest.raises(ValueError, match="expected tensors with the same number of rows, got 3, 2"):
        io.TensorDataset([paddle.zeros([3]), paddle.zeros([2])])
    with pytest.raises(TypeError, match=r"got a Tensor; write \[...\] around it"):
        io.TensorDataset(paddle.zeros([3]))


def test_random_split():
    paddle.seed(3)
    parts = io.random_split(Squares(10), [7, 3])
    assert [len(p) for p in parts] == [7, 3]
    assert sorted(y for p in parts for _, y in (p[i] for i in range(len(p)))) == [i * i for i in range(10)]
    assert [p.indices for p in io.random_split(Squares(10), [7, 3])] == [p.indices for p in parts]
    with pytest.raises(ValueError, match=r"expected sizes that add up to 10, got \[7, 4\]"):
        io.random_split(Squares(10), [7, 4])


def test_parts_of_a_whole():
    assert [len(p) for p in io.random_split(Squares(10), [0.33, 0.33, 0.34])] == [4, 3, 3]
    with pytest.raises(ValueError, match=r"expected sizes that add up to 10, got \[0.5, 0.4\]"):
        io.random_split(Squares(10), [0.5, 0.4])


def test_datasets_together():
    both = io.ConcatDataset([Squares(3), Squares(2)])
    assert [y for _, y in both] == [0, 1, 4, 0, 1] and len(both) == 5 and both[-1][1] == 1 and both[np.int64(2)][1] == 4
    for index in (5, -6):
        with pytest.raises(IndexError, match=rf"expected a sample number in -5 .. 4, got {index}"):
            both[index]
    side = io.ComposeDataset([Squares(3), range(3), Squares(3)])
    assert side[2] == (2.0, 4, 2, 2.0, 4) and len(side) == 3
    assert list(io.ChainDataset([Stream(), Stream()])) == [0, 1, 2, 3, 4] * 2
    for make, error, said in [
            (lambda: io.ConcatDataset([]), ValueError, "ConcatDataset: expected at least one dataset, got none"),
            (lambda: io.ConcatDataset([Stream()]), TypeError, "expected datasets with a length, got a Stream"),
            (lambda: io.ChainDataset([Squares()]), TypeError, "ChainDataset: expected IterableDatasets, got a Squares"),
            (lambda: io.ComposeDataset([Squares(2), Squares(3)]), ValueError, "the same length, got 2, 3")]:
        with pytest.raises(error, match=said):
            make()


def test_what_subclasses_define():
    with pytest.raises(NotImplementedError, match=r"Dataset defines __getitem__\(index\)"):
        io.Dataset()[0]
    with pytest.raises(NotImplementedError, match=r"IterableDataset defines __iter__\(\)"):
        iter(io.IterableDataset())


# ------------------------------------------------------------------------------------------------------ DataLoader
def test_batches_are_lists_of_tensors():
    """The dtypes are those that Paddle makes: a Python int becomes int64, a numpy float32 stays one."""
    loader = io.DataLoader(Squares(5), batch_size=2)
    batches = list(loader)
    assert len(loader) == 3 and [type(b) for b in batches] == [list] * 3
    x, y = batches[1]
    assert (x.tolist(), y.tolist(), x.dtype.name, y.dtype.name) == ([2.0, 3.0], [4, 9], "float32", "int64")
    assert batches[2][0].shape == [1]
    assert len(list(io.DataLoader(Squares(5), batch_size=2, drop_last=True))) == 2


def test_shuffling_is_repeatable_and_differs_by_epoch():
    def epochs():
        paddle.seed(2)
        loader = io.DataLoader(Squares(8), batch_size=4, shuffle=True)
        return [[b[1].tolist() for b in loader] for _ in range(2)]
    first, second = epochs()
    assert first != second and sorted(sum(first, [])) == [i * i for i in range(8)] and epochs() == [first, second]


def test_samples_of_any_structure():
    samples = [{"t": paddle.ones([2]), "a": np.zeros((1, 2)), "n": 1.5, "s": "one", "nested": (True, [3])},
               {"t": paddle.zeros([2]), "a": np.ones((1, 2)), "n": 2.5, "s": "two", "nested": (False, [4])}]
    batch, = io.DataLoader(samples, batch_size=2)
    assert batch["t"].tolist() == [[1, 1], [0, 0]] and batch["a"].shape == [2, 1, 2]
    assert batch["n"].dtype == "float64" and batch["s"] == ["one", "two"]
    assert batch["nested"][0].tolist() == [True, False] and batch["nested"][1][0].tolist() == [3, 4]
    with pytest.raises(TypeError, match="expected samples of tensors, .*, got object; give a collate_fn"):
        next(iter(io.DataLoader([object()])))
    with pytest.raises(ValueError, match=r"equally many fields, got \[1, 2\]; pad them"):
        next(iter(io.DataLoader([[1], [1, 2]], batch_size=2)))


def test_other_ways_to_batch():
    assert list(io.DataLoader(Squares(4), batch_size=2, collate_fn=len)) == [2, 2]
    by = io.DataLoader(Squares(4), batch_sampler=[[3, 0], [1]])
    assert [b[1].tolist() for b in by] == [[9, 0], [1]]
    single = list(io.DataLoader(Squares(3), batch_size=None))
    assert [s[1].item() for s in single] == [0, 1, 4] and single[0][0].shape == []


def test_a_stream_comes_in_its_own_order():
    loader = io.DataLoader(Stream(), batch_size=2)
    assert [b.tolist() for b in loader] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in io.DataLoader(Stream(), batch_size=2, drop_last=True)] == [[0, 1], [2, 3]]
    assert [b.item() for b in io.DataLoader(Stream(), batch_size=None)] == [0, 1, 2, 3, 4]
    with pytest.raises(TypeError, match="does not say how many"):
        len(loader)


@pytest.mark.parametrize("options,said", [
    ({"num_workers": -1}, "expected num_workers to be an int >= 0, got -1"),
    ({"num_workers": 1.5}, "expected num_workers to be an int >= 0, got 1.5"),
    ({"prefetch_factor": 0}, "expected prefetch_factor to be an int >= 1, got 0"),
    ({"timeout": -1}, "expected timeout >= 0, got -1"),
    ({"batch_sampler": [[0]], "shuffle": True}, "batch_sampler decides about batches"),
    ({"batch_size": -1}, "expected batch_size to be a positive int, got -1"),
    ({"batch_size": None, "shuffle": True}, "without batches"), ({"return_list": False}, "expected feed_list")])
def test_what_the_loader_refuses(options, said):
    with pytest.raises(ValueError, match=said):
        io.DataLoader(Squares(), **options)
    with pytest.raises(ValueError, match="an IterableDataset is taken in its own order"):
        io.DataLoader(Stream(), shuffle=True)


def test_a_generator_that_draws_as_paddle_takes_numbers_from_where_paddle_does():
    """After np.random.seed(2023), Paddle 3.3.1's RandomSampler begins so; otherwise numpy's seed means nothing."""
    token = enter(RankContext())
    try:
        np.random.seed(2023)
        own = list(io.RandomSampler(range(100)))
        current().rng.draw_as_paddle()
        np.random.seed(2023)
        drawn = list(io.RandomSampler(range(100)))
    finally:
        leave(token)
    assert drawn[:8] == [56, 12, 68, 0, 82, 66, 91, 44] and sorted(drawn) == list(range(100)) and drawn != own
