"""Recurrent layers against numpy, one step and one sequence at a time."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn

rs = np.random.RandomState(7)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def one_step(cell, x, states):
    """The formulas of the papers, for one sequence: x [in], states a tuple of [H]."""
    w, u, b, d = (p.numpy().astype("float64") for p in (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh))
    h = states[0]
    if isinstance(cell, nn.SimpleRNNCell):
        return (np.tanh(w @ x + b + u @ h + d),)
    if isinstance(cell, nn.LSTMCell):
        i, f, g, o = np.split(w @ x + b + u @ h + d, 4)
        c = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    (xr, xz, xn), (hr, hz, hn) = np.split(w @ x + b, 3), np.split(u @ h + d, 3)
    z, n = sigmoid(xz + hz), np.tanh(xn + sigmoid(xr + hr) * hn)
    return (z * h + (1 - z) * n,)


def whole(cell, x, length, reverse, states):
    """Outputs [T, H] of one sequence x [T, in], zeros behind its end, and its last states."""
    out = np.zeros((len(x), cell.hidden_size))
    for t in reversed(range(length)) if reverse else range(length):
        states = one_step(cell, x[t], states)
        out[t] = states[0]
    return out, states


CELLS = [nn.SimpleRNNCell, nn.LSTMCell, nn.GRUCell]
LAYERS = [nn.SimpleRNN, nn.LSTM, nn.GRU]


@pytest.mark.parametrize("kind", CELLS)
def test_a_cell(kind):
    cell = kind(3, 4)
    x, n = rs.randn(2, 3).astype("float32"), 2 if kind is nn.LSTMCell else 1
    s = rs.randn(n, 2, 4).astype("float32")
    out, new = cell(paddle.to_tensor(x), tuple(map(paddle.to_tensor, s)) if n == 2 else paddle.to_tensor(s[0]))
    for b in range(2):
        want = one_step(cell, x[b], s[:, b])
        np.testing.assert_allclose(out.numpy()[b], want[0], rtol=1e-5, atol=1e-6)
        for got, state in zip(new if n == 2 else [new], want, strict=True):
            np.testing.assert_allclose(got.numpy()[b], state, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(cell(paddle.to_tensor(x))[0].numpy()[0], one_step(cell, x[0], np.zeros((n, 4)))[0],
                               rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("direction", ["forward", "bidirect"])
@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("ragged", [False, True])
def test_stacked_layers(kind, direction, time_major, ragged):
    model = kind(3, 4, num_layers=2, direction=direction, time_major=time_major)
    lengths = [5, 2, 3] if ragged else [5, 5, 5]
    x, many = rs.randn(3, 5, 3).astype("float32"), 2 if direction == "bidirect" else 1
    s = rs.randn(2 if kind is nn.LSTM else 1, 2 * many, 3, 4).astype("float32")
    given = tuple(map(paddle.to_tensor, s)) if kind is nn.LSTM else paddle.to_tensor(s[0])
    out, final = model(paddle.to_tensor(x.swapaxes(0, 1) if time_major else x), given,
                       paddle.to_tensor(lengths) if ragged else None)
    out = out.numpy().swapaxes(0, 1) if time_major else out.numpy()
    final = np.stack([f.numpy() for f in (final if kind is nn.LSTM else [final])])
    for b in range(3):
        below = x[b].astype("float64")
        for i, layer in enumerate(model):
            outs = []
            for d, cell in enumerate(layer.children()):
                o, last = whole(cell, below, lengths[b], d == 1, s[:, i * many + d, b].astype("float64"))
                outs.append(o)
                np.testing.assert_allclose(final[:, i * many + d, b], last, rtol=1e-4, atol=1e-5)
            below = np.concatenate(outs, -1)
        np.testing.assert_allclose(out[b], below, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", LAYERS)
def test_gradients_by_finite_differences(kind):
    """Ragged, in both directions: there Paddle 3.3.1's own gradient of weight_hh is not that of what it computes."""
    model = kind(2, 3, direction="bidirect").to(dtype="float64")
    x = paddle.to_tensor(rs.randn(2, 3, 2), stop_gradient=False)
    lengths = paddle.to_tensor([3, 2])
    weights = paddle.to_tensor(rs.randn(2, 3, 6))

    def loss():
        return (model(x, sequence_length=lengths)[0] * weights).sum()
    loss().backward()
    for p in [x, *model.parameters()]:
        middle, direction = p.numpy(), rs.randn(*p.shape)
        sides = []
        for sign in (1, -1):
            p.set_value(middle + sign * 1e-6 * direction)
            sides.append(loss().item())
        p.set_value(middle)
        assert (p.grad.numpy() * direction).sum() == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-6), p.name


def test_a_cell_over_time_is_the_cell_step_by_step():
    for kind in CELLS:
        cell = kind(3, 4)
        x = paddle.to_tensor(rs.randn(2, 4, 3).astype("float32"))
        out, last = nn.RNN(cell)(x)
        states = None
        for t in range(4):
            y, states = cell(x[:, t], states)
            np.testing.assert_allclose(out.numpy()[:, t], y.numpy(), rtol=1e-5, atol=1e-6)
        flat = (last, states) if kind is not nn.LSTMCell else (last[1], states[1])
        np.testing.assert_allclose(flat[0].numpy(), flat[1].numpy(), rtol=1e-5, atol=1e-6)


class Count(nn.RNNCellBase):
    """Adds what it sees, scaled; the output is a pair."""

    @property
    def state_shape(self):
        return (1,)

    def forward(self, inputs, states, scale=1.0):
        total = states + inputs.sum(-1, keepdim=True) * scale
        return (total, -total), total


def test_a_cell_of_ones_own():
    rnn = nn.RNN(Count(), is_reverse=True)
    x = paddle.to_tensor([[[1.0], [2.0], [4.0]], [[1.0], [1.0], [1.0]]])
    (up, down), last = rnn(x, sequence_length=paddle.to_tensor([3, 2]), scale=10.0)
    assert up[0].flatten().tolist() == [70, 60, 40] and down[0].flatten().tolist() == [-70, -60, -40]
    assert last.flatten().tolist() == [70, 20]
    assert nn.BiRNN(Count(), Count())(x)[0][0].shape == [2, 3, 2]


def test_hooks_of_a_cell_are_called():
    cell, seen = nn.GRUCell(2, 2), []
    x = paddle.ones([1, 3, 2])
    fast = nn.RNN(cell)(x)[0]
    cell.register_forward_post_hook(lambda *_: seen.append(1))
    np.testing.assert_allclose(nn.RNN(cell)(x)[0].numpy(), fast.numpy(), rtol=1e-6)
    assert len(seen) == 3


def test_first_states():
    lstm = nn.LSTMCell(3, 4, proj_size=2)
    h, c = lstm.get_initial_states(paddle.ones([5, 7]), init_value=2.0)
    assert h.shape == [5, 2] and c.shape == [5, 4] and c.numpy().min() == 2
    a, b = lstm.get_initial_states([paddle.ones([5, 7])], [(-1, 2), (3,)], ["float64", "int64"], batch_dim_idx=1)
    assert a.shape == [7, 2] and a.dtype == "float64" and b.shape == [7, 3] and b.dtype == "int64"
    with pytest.raises(NotImplementedError, match="RNNCellBase defines no state_shape: define it, or pass initial"):
        nn.RNNCellBase().get_initial_states(a)


def test_a_projected_lstm():
    model = nn.LSTM(3, 4, num_layers=2, proj_size=2)
    out, (h, c) = model(paddle.ones([2, 5, 3]))
    assert out.shape == [2, 5, 2] and h.shape == [2, 2, 2] and c.shape == [2, 2, 4]
    cell = nn.LSTMCell(3, 4)
    projected = nn.LSTMCell(3, 4, proj_size=2)
    projected.weight_hh.set_value(np.zeros((16, 2), "float32"))
    cell.weight_hh.set_value(np.zeros((16, 4), "float32"))
    for name in ("weight_ih", "bias_ih", "bias_hh"):
        getattr(cell, name).set_value(getattr(projected, name))
    x = paddle.ones([2, 3])
    np.testing.assert_allclose(projected(x)[0].numpy(), cell(x)[0].numpy() @ projected.weight_ho.numpy(), rtol=1e-5)


def test_parameters_are_those_of_paddle():
    model = nn.GRU(2, 3, direction="bidirect", bias_ih_attr=False)
    names = [f"{n}_l0{s}" for s in ("", "_reverse") for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    assert [name for name, _ in model.named_parameters()] == names
    assert list(model.state_dict())[8:] == [f"0.cell_{w}.{n}" for w in ("fw", "bw")
                                            for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    assert model.bias_ih_l0.stop_gradient and not model.bias_ih_l0.numpy().any()
    assert abs(model.weight_hh_l0.numpy()).max() <= 3 ** -0.5
    assert repr(nn.LSTM(2, 3, 2, time_major=True, dropout=0.1)) == """\
LSTM(2, 3, num_layers=2, time_major=True, dropout=0.1
  (0): RNN(
    (cell): LSTMCell(2, 3)
  )
  (1): RNN(
    (cell): LSTMCell(3, 3)
  )
)"""
    assert repr(nn.SimpleRNNCell(2, 3, activation="relu")) == "SimpleRNNCell(2, 3, activation=relu)"


def test_dropout_between_layers_only_in_training():
    model = nn.GRU(2, 3, num_layers=2, dropout=0.9)
    x = paddle.ones([2, 4, 2])
    assert (model(x)[0].numpy() != model(x)[0].numpy()).any()
    model.eval()
    np.testing.assert_array_equal(model(x)[0].numpy(), model(x)[0].numpy())


def test_what_does_not_fit():
    x = paddle.ones([2, 4, 3])
    for call, message in (
            (lambda: nn.LSTM(2, 3)(x), r"LSTM: expected inputs \[batch, steps, 2\], got f32\[2, 4, 3\]"),
            (lambda: nn.LSTM(3, 5)(x, paddle.ones([1, 2, 5])),
             r"LSTM: expected initial states \(h, c\) of shape \[1, 2, 5\] and \[1, 2, 5\] \(layers"),
            (lambda: nn.GRU(3, 5, 2)(x, paddle.ones([1, 2, 5])),
             r"GRU: expected initial states h of shape \[2, 2, 5\]"),
            (lambda: nn.GRUCell(3, 5)(x[:, 0], paddle.ones([2, 4])),
             r"GRUCell: expected 1 states, \[batch, width\] with width 5, got f32\[2, 4\]"),
            (lambda: nn.LSTMCell(3, 5)(x[:, 0, :2]), "LSTMCell: expected inputs of 3 features in the last dimension"),
            (lambda: nn.GRU(3, 5)(x[:, :0]), "GRUCell over time: expected a known number of steps, at least 1, got 0"),
            (lambda: nn.SimpleRNN(2, 3, activation="gelu"), "SimpleRNN: expected the activation tanh or relu"),
            (lambda: nn.LSTM(2, 3, direction="both"), "expected a direction of forward, bidirect, bidirectional, got"),
            (lambda: nn.LSTMCell(2, 3, proj_size=3), "expected a proj_size in 0 .. hidden_size - 1 = 2, got 3"),
            (lambda: nn.GRUCell(2, 0), "GRUCell: expected a hidden_size greater than 0, got 0"),
            (lambda: nn.BiRNN(nn.GRUCell(3, 2), nn.GRUCell(3, 2))(x, [x]), "BiRNN: expected initial states of both")):
        with pytest.raises(ValueError, match=message):
            call()
    assert nn.GRU(3, 5)(paddle.ones([0, 4, 3]))[0].shape == [0, 4, 5]
