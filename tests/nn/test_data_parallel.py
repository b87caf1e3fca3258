"""DataParallel: ranks that see parts of a batch make the step of one rank that sees all of it."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.dist.simulate import simulate
from minipd.framework.rank import current

X = np.random.RandomState(0).randn(4, 3).astype("float32")


def steps(rank, world, hold_back=False):
    paddle.seed(rank)                                   # other first values on each rank
    model = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1))
    first = [p.numpy() for p in model.parameters()]
    net = paddle.DataParallel(model)
    opt = paddle.optimizer.SGD(0.5, parameters=net.parameters())
    for _ in range(2):
        for i, x in enumerate(X[rank::world]):
            if hold_back and i == 0:
                with net.no_sync():
                    net(paddle.to_tensor(x)).square().sum().backward()
            else:
                net(paddle.to_tensor(x)).square().sum().backward()
        opt.step()
        opt.clear_grad()
    return first, [p.numpy() for p in model.parameters()]


def alone(first):
    """One rank: the mean over two ranks' sums is half the sum over all."""
    model = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1))
    for p, value in zip(model.parameters(), first, strict=True):
        p.set_value(value)
    opt = paddle.optimizer.SGD(0.5, parameters=model.parameters())
    for _ in range(2):
        (model(paddle.to_tensor(X)).square().sum() / 2).backward()
        opt.step()
        opt.clear_grad()
    return [p.numpy() for p in model.parameters()]


@pytest.mark.parametrize("hold_back", [False, True])
def test_two_ranks_step_as_one(hold_back):
    results = simulate("dp=2", lambda mesh: steps(current().rank, 2, hold_back))
    first = results[0][0]
    for _, last in results:
        for got, want in zip(last, alone(first), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)


def test_one_rank_is_the_model_itself():
    model = nn.Linear(3, 2)
    net = paddle.DataParallel(model)
    x = paddle.to_tensor(X)
    np.testing.assert_array_equal(net(x).numpy(), model(x).numpy())
    net.set_state_dict({name: t.numpy() * 2 for name, t in net.state_dict().items()})
    assert list(net.state_dict()) == ["weight", "bias"] and net.scale_loss(x) is x
    assert [name for name, _ in net.named_parameters()] == ["_layers.weight", "_layers.bias"]
