"""Model: training, evaluation and prediction against the same done by hand."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.io import Dataset, IterableDataset
from minipd.static import InputSpec


class Points(Dataset):
    def __init__(self, n):
        rs = np.random.RandomState(2)
        self.x, self.y = rs.rand(n, 4).astype("float32"), rs.randint(0, 3, (n, 1))

    def __getitem__(self, i):
        return self.x[i], self.y[i]

    def __len__(self):
        return len(self.x)


def network():
    rs = np.random.RandomState(1)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    for p in net.parameters():
        p.set_value((rs.rand(*p.shape) - 0.5).astype("float32"))
    return net


def prepared(metrics=None, rate=0.5, **kwargs):
    model = paddle.Model(network(), **kwargs)
    model.prepare(paddle.optimizer.SGD(rate, parameters=model.parameters()), nn.CrossEntropyLoss(), metrics)
    return model


def by_hand(steps, accumulate=1):
    """The parameters after `steps` steps over batches of 4 of ten points, in order, again and again."""
    net, data = network(), Points(10)
    opt = paddle.optimizer.SGD(0.5, parameters=net.parameters())
    batches = [slice(0, 4), slice(4, 8), slice(8, 10)]
    for step in range(steps):
        part = batches[step % 3]
        paddle.nn.functional.cross_entropy(net(paddle.to_tensor(data.x[part])),
                                           paddle.to_tensor(data.y[part])).backward()
        if (step + 1) % accumulate == 0 or step % 3 == 2:
            opt.step()
            opt.clear_grad()
    return [p.numpy() for p in net.parameters()]


@pytest.mark.parametrize("epochs, options, steps, accumulate", [
    (2, {}, 6, 1), (5, {"num_iters": 4}, 4, 1), (1, {"accumulate_grad_batches": 2}, 3, 2)])
def test_fit_is_training_by_hand(epochs, options, steps, accumulate):
    model = prepared()
    model.fit(Points(10), batch_size=4, epochs=epochs, shuffle=False, verbose=0, **options)
    for got, want in zip(model.parameters(), by_hand(steps, accumulate), strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)


def test_fit_leaves_out_the_rest():
    model = prepared()
    model.fit(Points(10), batch_size=4, shuffle=False, drop_last=True, verbose=0)
    for got, want in zip(model.parameters(), by_hand(2), strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)


def test_one_batch():
    model, data = prepared(paddle.metric.Accuracy()), Points(4)
    x, y = paddle.to_tensor(data.x), paddle.to_tensor(data.y)
    logits = model.predict_batch([x])[0]
    (loss,), (acc,) = model.eval_batch([x], [y])
    picked = np.take_along_axis(logits, data.y, 1)[:, 0]
    assert loss == pytest.approx((np.log(np.exp(logits).sum(1)) - picked).mean(), rel=1e-5)
    assert acc == (logits.argmax(1) == data.y[:, 0]).mean()
    before = model.parameters()[0].numpy()
    model.train_batch(data.x, data.y, update=False)
    np.testing.assert_array_equal(model.parameters()[0].numpy(), before)
    (loss,), _ = model.train_batch(x, y)
    assert (model.parameters()[0].numpy() != before).any() and loss.shape == () and model.network.training


def test_evaluate_counts_all_samples():
    model, data = prepared([paddle.metric.Accuracy((1, 2))]), Points(10)
    got = model.evaluate(data, batch_size=4, verbose=0)
    logits = model.predict_batch(data.x)[0]
    assert list(got) == ["loss", "acc_top1", "acc_top2"]
    assert got["acc_top1"] == pytest.approx((logits.argmax(1) == data.y[:, 0]).mean())
    last = logits[8:]
    loss = (np.log(np.exp(last).sum(1)) - np.take_along_axis(last, data.y[8:], 1)[:, 0]).mean()
    assert got["loss"] == [pytest.approx(loss, rel=1e-5)], "of the last batch, as in Paddle"
    assert not model.network.training
    assert model.evaluate(data, batch_size=4, verbose=0, num_iters=1)["acc_top1"] == pytest.approx(
        (logits[:4].argmax(1) == data.y[:4, 0]).mean())


def test_predict():
    model, data = prepared(inputs=InputSpec([None, 4], "float32", "x")), Points(6)
    (parts,) = model.predict(data, batch_size=4, verbose=0)
    assert [p.shape for p in parts] == [(4, 3), (2, 3)]
    (whole,) = model.predict(data, batch_size=4, stack_outputs=True, verbose=0)
    np.testing.assert_allclose(whole, model.predict_batch(data.x)[0], rtol=1e-5)


class Two(nn.Layer):
    """Two inputs, two outputs."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 1)

    def forward(self, a, b):
        return self.inner(a), self.inner(b)


class Stream(IterableDataset):
    def __iter__(self):
        for i in range(3):
            yield np.float32([i, 1]), np.float32([1, i]), np.float32([i])


def test_several_inputs_outputs_and_losses():
    model = paddle.Model(Two())
    model.prepare(paddle.optimizer.SGD(0.1, parameters=model.parameters()),
                  lambda a, b, y: [(a - y).square().mean(), (b - y).square().mean()])
    model.fit(Stream(), batch_size=2, verbose=0)
    got = model.evaluate(Stream(), batch_size=2, verbose=0)
    assert len(got["loss"]) == 2
    a, b = model.predict(Stream(), batch_size=2, stack_outputs=True, verbose=0)
    assert a.shape == b.shape == (3, 1)


def test_a_loader_of_ones_own():
    loader = paddle.io.DataLoader(Points(10), batch_size=4)
    model = prepared()
    model.fit(loader, verbose=0)
    for got, want in zip(model.parameters(), by_hand(3), strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("low", ["float16", "bfloat16"])
def test_mixed_precision(level, low):
    model = paddle.Model(network())
    opt = paddle.optimizer.SGD(0.5, parameters=model.parameters())
    seen = set()

    def loss(out, label):
        seen.add(paddle.matmul(out, out, transpose_y=True).dtype.name)
        return nn.functional.cross_entropy(out, label)
    model.prepare(opt, loss, amp_configs={"level": level, "dtype": low, "init_loss_scaling": 8.0})
    model.fit(Points(10), batch_size=4, epochs=2, shuffle=False, verbose=0)
    for got, want in zip(model.parameters(), by_hand(6), strict=True):
        np.testing.assert_allclose(got.astype("float32").numpy(), want, atol=0.03)
    assert seen == {low}
    model.prepare(opt, loss, amp_configs="O1")
    assert model._scaler.is_enable()
    with pytest.raises(ValueError, match="a level of O0, O1, O2 and options of .*, got level 'O1' and lists"):
        model.prepare(opt, amp_configs={"lists": 1})


# ---------------------------------------------------------------------------------------------------------- saving
def test_a_saved_model_goes_on_where_it_was(tmp_path):
    def model():
        made = paddle.Model(network())
        made.prepare(paddle.optimizer.Adam(0.1, parameters=made.parameters()), nn.CrossEntropyLoss())
        return made
    one, two = model(), model()
    one.fit(Points(10), batch_size=4, shuffle=False, verbose=0)
    one.save(str(tmp_path / "a" / "b"))
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["b.pdopt", "b.pdparams"]
    two.network.set_state_dict({k: v.numpy() for k, v in one.network.state_dict().items()})
    # parameters have other names there: the optimizer's state is found by them
    for mine, theirs in zip(two.parameters(), one.parameters(), strict=True):
        mine.name = theirs.name
    two = paddle.Model(two.network)
    two.prepare(paddle.optimizer.Adam(0.1, parameters=two.parameters()), nn.CrossEntropyLoss())
    two.load(str(tmp_path / "a" / "b"))
    for each in (one, two):
        each.fit(Points(10), batch_size=4, shuffle=False, verbose=0)
    for got, want in zip(two.parameters(), one.parameters(), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


def test_loading_what_does_not_fit(tmp_path):
    path = str(tmp_path / "m")
    prepared().save(path)
    other = paddle.Model(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 5)))
    with pytest.raises(ValueError, match=r"of another shape or dtype \(2\): 2.weight: expected f32\[8, 5\], got"):
        other.load(path)
    with pytest.warns(UserWarning, match="skipped 2.(weight|bias), of another shape or dtype in .*m.pdparams"):
        other.load(path, skip_mismatch=True)
    np.testing.assert_array_equal(other.network[0].weight.numpy(), network()[0].weight.numpy())
    with pytest.raises(Exception, match="zz.pdparams"):
        other.load(str(tmp_path / "zz"))
    with pytest.raises(ValueError, match="expected training=True, got False"):
        other.save(path, training=False)


def test_what_is_missing():
    model = paddle.Model(network())
    with pytest.raises(RuntimeError, match=r"train_batch: expected an optimizer and a loss; call prepare"):
        model.train_batch(np.ones((1, 4), "float32"))
    for call, error, message in (
            (lambda: paddle.Model(3), TypeError, "Model: expected a Layer as network, got int"),
            (lambda: model.prepare(None, 3), TypeError, "expected a loss that can be called with outputs and labels"),
            (lambda: model.prepare(None, None, [3]), TypeError, "expected metrics from paddle.metric, got int"),
            (lambda: model.fit(), ValueError, "expected train_data, a Dataset or a DataLoader, got None"),
            (lambda: model.summary(), ValueError, "expected an input_size, or a model that was made with inputs"),
            (lambda: prepared().fit(Points(3), callbacks=[3], verbose=0), TypeError, "expected a Callback or a list")):
        with pytest.raises(error, match=message):
            call()
