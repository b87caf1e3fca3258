"""Paddle's numbers: the engine against the C++ standard, the draws against Paddle 3.3.1 on a CPU."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.framework import draws, mersenne
from minipd.framework.random import Generator
from minipd.framework.rank import current
from minipd.nn import functional as F


@pytest.fixture(autouse=True)
def as_paddle():
    current().rng.draw_as_paddle()


def test_the_engine_is_mt19937_64():
    """[rand.predef]: the 10000th number of an engine with the default seed, which fills the state by a recurrence."""
    state = [5489]
    for i in range(1, mersenne.SIZE):
        state.append((6364136223846793005 * (state[-1] ^ state[-1] >> 62) + i) % 2 ** 64)
    engine = mersenne.Engine(0)
    engine.states = [np.array(state, np.uint64)]
    assert engine.words(9999, 1).tolist() == [9981545732273789042]


def test_words_do_not_depend_on_how_they_are_asked_for():
    whole, n = mersenne.Engine(7).words(0, 200_000), mersenne.CHUNK * mersenne.SIZE
    for start, size in ((0, 5), (n - 3, 7), (2 * n, 1), (199_990, 10), (n, 0)):
        np.testing.assert_array_equal(mersenne.Engine(7).words(start, size), whole[start:start + size])


def test_the_upper_half_of_a_product():
    words, factor = np.array([0, 1, 2 ** 64 - 1, 0x123456789ABCDEF0], np.uint64), 0xFEDCBA9876543210
    assert draws._upper_half(words, factor).tolist() == [int(w) * factor >> 64 for w in words]


def test_draws_are_those_of_paddle():
    paddle.seed(100)
    np.testing.assert_allclose(paddle.rand([4]).numpy(), [0.55355281, 0.20714243, 0.01162981, 0.51577556], rtol=1e-6)
    paddle.seed(2023)
    np.testing.assert_allclose(paddle.rand([2], "float64").numpy(), [0.86583615, 0.52014721], atol=1e-8)
    paddle.seed(100)
    np.testing.assert_allclose(paddle.randn([2, 2]).numpy(), [[-1.41661501, 0.25904641], [0.00979547, -0.30324230]],
                               rtol=1e-6)
    paddle.seed(2023)
    assert paddle.randint(0, 20, [10]).tolist() == [17, 10, 5, 18, 8, 8, 19, 14, 10, 14]
    paddle.seed(2023)
    assert F.dropout(paddle.ones([6]), 0.5).tolist() == [2, 2, 0, 2, 0, 0]


def test_draws_follow_one_another():
    paddle.seed(100)
    whole = paddle.rand([6]).tolist()
    paddle.seed(100)
    assert paddle.rand([2]).tolist() + paddle.rand([4]).tolist() == whole
    paddle.seed(100)
    F.dropout(paddle.ones([3]), 0.5)            # a word for each element
    assert paddle.rand([3]).tolist() == whole[3:]


def test_initial_values_take_words_too():
    paddle.seed(1)
    first = nn.Linear(2, 3)                     # the bias is constant, and takes none
    second = nn.Linear(2, 3)
    paddle.seed(1)
    again = paddle.rand([12]).numpy()
    limit = np.sqrt(6 / 5)
    want = (2 * again - 1) * limit
    np.testing.assert_allclose(np.append(first.weight.numpy(), second.weight.numpy()), want, rtol=1e-5)


def test_a_mask_is_drawn_again_for_the_gradient():
    x = paddle.ones([50])
    x.stop_gradient = False
    y = F.dropout(x, 0.3)
    paddle.rand([7])
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


def test_a_state_brings_the_same_draws_back():
    paddle.seed(3)
    paddle.rand([5])
    before = paddle.get_rng_state()
    drawn = paddle.randn([3]).tolist()
    paddle.set_rng_state(before)
    assert paddle.randn([3]).tolist() == drawn


def test_a_part_is_a_part_of_the_whole():
    key = current().rng.next_key()
    whole = draws.normal(key, (4, 6))
    np.testing.assert_array_equal(draws.normal(key, (2, 3), window=((4, 6), (1, 2))), whole[1:3, 2:5])


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 100])
def test_permutations(n):
    assert sorted(paddle.randperm(n).tolist()) == list(range(n))


def test_distributions():
    n = 100_000
    x = paddle.randn([n]).numpy()
    assert abs(x.mean()) < 0.02 and abs(x.std() - 1) < 0.02
    assert 0 <= paddle.rand([n]).numpy().min() and paddle.rand([n]).numpy().max() < 1
    counts = np.bincount(paddle.randint(0, 5, [n]).numpy())
    assert np.abs(counts / n - 0.2).max() < 0.01


def test_without_being_told_draws_go_by_their_names():
    assert mersenne.stream_number(Generator(0).next_key()) is None
