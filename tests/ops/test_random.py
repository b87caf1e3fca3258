"""Random draws: the moments and frequencies that they should have, what a seed repeats, and what they refuse.

Seeds are fixed, so nothing here is a matter of luck; bounds are five standard errors or more.
"""

import math

import numpy as np
import pytest

import minipd as paddle

N = 20000


@pytest.fixture(autouse=True)
def seeded():
    paddle.seed(2026)


def moments(x, mean, variance, kurtosis=3.0):
    """Whether N or more draws have the moments of a distribution with this kurtosis, within five standard errors."""
    x = np.asarray(x, np.float64).reshape(-1)
    assert abs(x.mean() - mean) <= 5 * math.sqrt(variance / x.size)
    assert abs(x.var() - variance) <= 5 * variance * math.sqrt((kurtosis - 1) / x.size) + 1e-12


def frequencies(x, probabilities):
    """Whether the ints 0, 1, ... come as often as they should: Pearson's chi-squared within five deviations."""
    x = np.asarray(x).reshape(-1).astype(np.int64)
    counts, want = np.bincount(x, minlength=len(probabilities)), x.size * np.asarray(probabilities)
    assert len(counts) == len(want) and not counts[want == 0].any()
    some = want > 0
    freedom = some.sum() - 1
    assert ((counts - want)[some] ** 2 / want[some]).sum() <= freedom + 5 * math.sqrt(2 * freedom)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_uniform_and_normal(dtype):
    x = paddle.uniform([N], dtype, -1.0, 3.0)
    assert x.dtype == dtype
    x = x.numpy().astype("float64")
    moments(x, 1.0, 16 / 12, 1.8)
    assert x.min() >= -1 and x.max() < 3
    moments(paddle.randn([N], dtype).numpy(), 0.0, 1.0)
    x = paddle.ones([N], dtype)
    assert x.normal_(2.0, 0.5) is x and x.dtype == dtype
    moments(x.numpy(), 2.0, 0.25)
    moments(x.uniform_(0.0, 2.0).numpy(), 1.0, 4 / 12, 1.8)
    moments(paddle.rand_like(x).numpy(), 0.5, 1 / 12, 1.8)
    moments(paddle.randn_like(x, "float64").numpy(), 0.0, 1.0)


def test_normal_with_means_and_deviations_of_their_own():
    mean, std = np.repeat([0.0, 5.0], N), np.repeat([1.0, 2.0], N)
    for x in (paddle.normal(paddle.to_tensor(mean), paddle.to_tensor(std)),
              paddle.normal(0.0, paddle.to_tensor(std)) + paddle.to_tensor(mean)):
        moments(x[:N], 0.0, 1.0)
        moments(x[N:], 5.0, 4.0)
    assert paddle.normal().shape == [1] and paddle.normal(shape=[2, 3]).shape == [2, 3]
    m = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    paddle.normal(m, 1.0).sum().backward()
    assert m.grad.tolist() == [1.0, 1.0]


def test_complex_numbers_share_their_variance():
    for z, mean in ((paddle.randn([N], "complex64"), 0), (paddle.normal(1 + 2j, 2.0, [N]), 1 + 2j),
                    (paddle.zeros([N], "complex128").normal_(1j, 3.0), 1j)):
        variance = {0: 0.5, 1 + 2j: 2.0, 1j: 4.5}[mean]
        moments(z.numpy().real, complex(mean).real, variance)
        moments(z.numpy().imag, complex(mean).imag, variance)


def test_ints():
    x = paddle.randint(-2, 3, [N])
    frequencies(x + 2, [0.2] * 5)
    assert paddle.randint(4).shape == [1] and str(paddle.randint(4, dtype="int32").dtype) == "paddle.int32"
    frequencies(paddle.randint_like(paddle.zeros([N]), 3), [1 / 3] * 3)
    assert str(paddle.randint_like(paddle.zeros([3], "bool"), 2).dtype) == "paddle.bool"
    x = paddle.zeros([N], "int32")
    assert x.random_(0, 4) is x
    frequencies(x, [0.25] * 4)
    assert paddle.zeros([N], "float16").random_().numpy().max() <= 2048
    assert paddle.zeros([N], "int64").random_().numpy().max() > 2**62


def test_permutations_are_even():
    numbers = {p: i for i, p in enumerate([(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])}
    frequencies([numbers[tuple(paddle.randperm(3).tolist())] for _ in range(2000)], [1 / 6] * 6)
    assert sorted(paddle.randperm(1000, "int32").tolist()) == list(range(1000))


def test_bernoulli():
    p = np.repeat([0.0, 0.3, 1.0], N)
    x = paddle.bernoulli(paddle.to_tensor(p)).numpy()
    assert not x[:N].any() and x[2 * N:].all()
    frequencies(x[N:2 * N], [0.7, 0.3])
    frequencies(paddle.bernoulli(paddle.ones([N]), p=0.9), [0.1, 0.9])
    frequencies(paddle.ones([N], "int64").bernoulli_(0.25), [0.75, 0.25])
    rows = paddle.zeros([2, N]).bernoulli_(paddle.to_tensor([[0.0], [1.0]])).numpy()
    assert not rows[0].any() and rows[1].all()


def test_multinomial():
    weights = np.array([1.0, 0.0, 3.0, 4.0])
    frequencies(paddle.multinomial(paddle.to_tensor(weights), N, replacement=True), weights / 8)
    rows = paddle.multinomial(paddle.to_tensor(np.stack([weights, weights[::-1]])), N, replacement=True)
    frequencies(rows[0], weights / 8)
    frequencies(rows[1], weights[::-1] / 8)
    many = paddle.multinomial(paddle.to_tensor(np.tile(weights, (N, 1))), 3).numpy()
    assert (np.sort(many, 1) == [0, 2, 3]).all()                # each once
    frequencies(many[:, 0], weights / 8)
    # the second, after a first: sum over the first of p_first p_second / (1 - p_first)
    p = weights / 8
    frequencies(many[:, 1], [sum(p[i] * p[j] / (1 - p[i]) for i in range(4) if i != j) for j in range(4)])


def test_counts():
    for rate in (0.5, 4.0, 100.0):
        moments(paddle.poisson(paddle.full([N], rate)).numpy(), rate, rate, 3 + 1 / rate)
    x = paddle.binomial(paddle.full([N], 20.0), paddle.full([N], 0.3))
    moments(x.numpy(), 6.0, 4.2)
    assert str(x.dtype) == "paddle.int64"
    for shape in (0.5, 3.0):
        moments(paddle.standard_gamma(paddle.full([N], shape)).numpy(), shape, shape, 3 + 6 / shape)


def test_continuous_draws_in_place():
    x = paddle.empty([N], "float64")
    moments(x.exponential_(2.0).numpy(), 0.5, 0.25, 9.0)
    moments(np.log(x.log_normal_(1.0, 0.5).numpy()), 1.0, 0.25)
    moments(np.log(paddle.log_normal(1.0, 0.5, [N]).numpy()), 1.0, 0.25)
    rate = -math.log(0.7)
    moments(x.geometric_(0.3).numpy(), 1 / rate, 1 / rate**2, 9.0)
    quarters = np.quantile(x.cauchy_(1.0, 2.0).numpy(), [0.25, 0.5, 0.75])
    np.testing.assert_allclose(quarters, [-1.0, 1.0, 3.0], atol=0.2)


# ------------------------------------------------------------------------------------------------ seeds and states
DRAWS = [lambda: paddle.rand([4]), lambda: paddle.randint(100, shape=[4]), lambda: paddle.randperm(9),
         lambda: paddle.poisson(paddle.full([4], 50.0)), lambda: paddle.multinomial(paddle.ones([9]), 5),
         lambda: paddle.standard_gamma(paddle.ones([4])), lambda: paddle.zeros([4]).exponential_(),
         lambda: paddle.bernoulli(paddle.full([40], 0.5))]


@pytest.mark.parametrize("draw", DRAWS)
def test_a_seed_and_a_state_repeat_draws(draw):
    paddle.seed(7)
    first, state, second = draw().tolist(), paddle.get_rng_state(), draw().tolist()
    assert first != second
    paddle.set_rng_state(state)
    assert draw().tolist() == second
    assert paddle.manual_seed(7) is not None and draw().tolist() == first


def test_states_are_those_of_one_generator():
    assert paddle.get_cuda_rng_state() == []
    paddle.set_cuda_rng_state([])
    with pytest.raises(ValueError, match="set_rng_state: expected the state of one generator"):
        paddle.set_rng_state([])
    with pytest.raises(ValueError, match="set_cuda_rng_state: expected no states"):
        paddle.set_cuda_rng_state(paddle.get_rng_state())


def test_where_results_go():
    out = paddle.zeros([3])
    assert paddle.rand([3], out=out) is out and out.numpy().any()
    assert not paddle.randn([2], requires_grad=True).stop_gradient
    assert paddle.uniform([2], device=None).stop_gradient


@pytest.mark.parametrize(("f", "error", "said"), [
    (lambda: paddle.randint(0), ValueError, "randint: expected low < high"),
    (lambda: paddle.randint(3, 3), ValueError, r"randint: expected low < high .* got \[3, 3\)"),
    (lambda: paddle.randint(3, dtype="float32"), TypeError, "randint: expected an int dtype, got float32"),
    (lambda: paddle.randint(300, dtype="int8"), ValueError, "expected low < high within int8"),
    (lambda: paddle.randperm(-1), ValueError, "randperm: expected n >= 0, got -1"),
    (lambda: paddle.rand([2], "int64"), TypeError, "uniform: expected a floating or complex dtype, got int64"),
    (lambda: paddle.normal(0.0, -1.0), ValueError, "normal: expected a standard deviation >= 0, got -1"),
    (lambda: paddle.bernoulli(paddle.ones([2]) * 2.0), ValueError, "bernoulli: expected probabilities from 0 to 1"),
    (lambda: paddle.bernoulli(paddle.ones([2], "int64")), TypeError, "bernoulli: expected a floating tensor"),
    (lambda: paddle.multinomial(paddle.zeros([2])), ValueError, "multinomial: .* got only zeros"),
    (lambda: paddle.multinomial(paddle.ones([2]) * -1.0), ValueError, "multinomial: expected weights >= 0"),
    (lambda: paddle.multinomial(paddle.to_tensor([1.0, 0.0, 1.0]), 3), ValueError, "num_samples up to 2"),
    (lambda: paddle.multinomial(paddle.ones([2, 2, 2])), ValueError, "multinomial: expected weights of 1 or 2 dim"),
    (lambda: paddle.multinomial(paddle.ones([2]), 0), ValueError, "multinomial: expected at least one sample"),
    (lambda: paddle.poisson(paddle.ones([2]) * -1.0), ValueError, "poisson: expected rates >= 0"),
    (lambda: paddle.poisson(paddle.ones([2], "int64")), TypeError, "poisson: expected a floating tensor"),
    (lambda: paddle.binomial(paddle.ones([2]), paddle.ones([2]) * 2.0), ValueError, "binomial: expected counts >= 0"),
    (lambda: paddle.standard_gamma(paddle.ones([2]) * -1.0), ValueError, "standard_gamma: expected shapes >= 0"),
    (lambda: paddle.ones([2]).exponential_(0.0), ValueError, "exponential_: expected a rate lam > 0, got 0"),
    (lambda: paddle.ones([2]).geometric_(1.5), ValueError, "geometric_: expected a probability between 0 and 1"),
    (lambda: paddle.ones([2], "int64").uniform_(), TypeError, r"uniform_: expected a floating tensor, got i64\[2\]"),
    (lambda: paddle.ones([2], "int64").normal_(), TypeError, "normal_: expected a floating tensor"),
    (lambda: paddle.rand([2], device="gpu"), ValueError, "rand: expected the device 'cpu'"),
    (lambda: paddle.uniform([2], device="gpu:0"), ValueError, "uniform: expected the device 'cpu'"),
    (lambda: paddle.randn_like(paddle.ones([2]), device="gpu"), ValueError, "expected the device 'cpu'"),
    (lambda: paddle.ones([2], "bool").random_(), TypeError, "random_: expected a floating or int tensor"),
])
def test_what_is_refused(f, error, said):
    with pytest.raises(error, match=said):
        f()


def test_leaves_are_not_overwritten_unnoticed():
    x = paddle.ones([2])
    x.stop_gradient = False
    with pytest.raises(RuntimeError, match="uniform_ on leaf"):
        x.uniform_()
    y = x * 2.0
    y.uniform_()
    assert y.stop_gradient
