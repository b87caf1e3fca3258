"""jit.save and jit.load: layers and functions as files, and as layers again."""

import json
import random

import numpy as np
import pytest

import minipd as paddle
from minipd.framework.errors import InputError
from minipd.io.combined_tensors import combined
from minipd.jit import TranslatedLayer, load, save
from minipd.static import InputSpec

F = paddle.nn.functional


def array(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


class Mlp(paddle.nn.Layer):
    def __init__(self, width=7):
        super().__init__()
        self.first, self.second = paddle.nn.Linear(3, width), paddle.nn.Linear(width, 2)
        self.drop = paddle.nn.Dropout(0.9)

    def forward(self, x):
        return self.second(self.drop(F.relu(self.first(x))))


def by_numpy(net, x):
    w1, b1, w2, b2 = (p.numpy() for p in net.parameters())
    return np.maximum(x @ w1 + b1, 0) @ w2 + b2


def test_a_layer_computes_the_same_for_every_batch(tmp_path):
    net = Mlp()
    save(net, f"{tmp_path}/folder/net", [InputSpec([None, 3])])
    assert sorted(f.name for f in (tmp_path / "folder").iterdir()) == ["net.json", "net.pdiparams"]
    again = load(f"{tmp_path}/folder/net")
    assert isinstance(again, TranslatedLayer) and isinstance(again, paddle.nn.Layer) and not again.training
    for n in (1, 4, 9):
        x = array(n, 3, seed=n)
        np.testing.assert_allclose(again(paddle.to_tensor(x)).numpy(), by_numpy(net, x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(again(array(2, 3)).numpy(), by_numpy(net, array(2, 3)), rtol=1e-5, atol=1e-6)
    assert net.training and net.drop.training              # saved in evaluation, left as it was
    assert [d["shape"] for d in [op.attrs() for op in again.program().global_block() if op.name() == "pd_op.data"]]
    assert again._input_spec()[0].shape[1] == 3 and again._input_spec()[0].name == "x"


def test_the_file_names_inputs_and_keeps_open_dimensions(tmp_path):
    save(Mlp(), f"{tmp_path}/net", [InputSpec([-1, 3], name="image")])
    ops = json.loads((tmp_path / "net.json").read_text())["program"]["regions"][0]["blocks"][0]["ops"]
    data = next(o for o in ops if o["#"] == "1.data")
    assert {a["N"]: a["AT"]["D"] for a in data["A"]} == {"name": "image", "shape": [-1, 3], "dtype": "float32",
                                                        "place": [0, 0, ""]}
    fetch = ops[-1]
    assert fetch["#"] == "1.fetch" and fetch["A"][0]["AT"]["D"] == "fetch_name_0"
    assert fetch["O"][0]["TT"]["D"][1] == [-1, 2]
    assert sum(o["#"] == "p" for o in ops) == 4 and not any("dropout" in o["#"] for o in ops)


def test_a_loaded_layer_is_trained_further_and_saved_again(tmp_path):
    net = Mlp()
    save(net, f"{tmp_path}/net", [InputSpec([None, 3])])
    again = load(f"{tmp_path}/net")
    assert [p.stop_gradient for p in again.parameters()] == [False] * 4
    again.train()
    x, y = paddle.to_tensor(array(5, 3)), paddle.to_tensor(array(5, 2, seed=1))
    optimizer = paddle.optimizer.SGD(0.1, parameters=again.parameters())
    net.eval()
    reference = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    for _ in range(3):
        for model, step in ((again, optimizer), (net, reference)):
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            step.step()
            step.clear_grad()
    np.testing.assert_allclose(again(x).numpy(), net(x).numpy(), rtol=1e-5, atol=1e-6)
    save(again, f"{tmp_path}/more", [InputSpec([None, 3])])
    np.testing.assert_allclose(load(f"{tmp_path}/more")(x).numpy(), net(x).numpy(), rtol=1e-5, atol=1e-6)
    twice = paddle.nn.Sequential(again, paddle.nn.Linear(2, 2))
    assert twice(x).shape == [5, 2] and len(twice.parameters()) == 6
    state = again.state_dict()
    fresh = load(f"{tmp_path}/net")
    fresh.set_state_dict(state)
    np.testing.assert_allclose(fresh(x).numpy(), again(x).numpy(), rtol=1e-6)


def test_a_loaded_layer_as_part_of_a_compiled_function(tmp_path):
    net = Mlp()
    save(net, f"{tmp_path}/net", [InputSpec([None, 3])])
    again = load(f"{tmp_path}/net")

    @paddle.jit.to_static
    def doubled(x):
        return again(x) * 2.0

    x = array(4, 3)
    np.testing.assert_allclose(doubled(paddle.to_tensor(x)).numpy(), 2 * by_numpy(net, x), rtol=1e-5, atol=1e-6)


def test_functions_tensors_around_them_and_several_results(tmp_path):
    scale = paddle.to_tensor(array(3))
    scale.stop_gradient = False

    def f(x, pair, flag):
        return {"b": x * scale, "a": [pair[0] + 1, x.sum(-1)], "none": None, "flag": flag, "x": x, "again": x * scale}

    with pytest.warns(UserWarning, match="a function is saved with the tensors"):
        save(f, f"{tmp_path}/f", [InputSpec([None, 3]), [InputSpec([2], "int64")], True])
    again = load(f"{tmp_path}/f")
    x = array(4, 3)
    a0, a1, again2, b, same = again(paddle.to_tensor(x), paddle.to_tensor([1, 2]))
    assert a0.tolist() == [2, 3] and np.array_equal(same.numpy(), x)
    np.testing.assert_allclose(a1.numpy(), x.sum(-1), rtol=1e-6)
    assert np.array_equal(b.numpy(), x * scale.numpy()) and np.array_equal(again2.numpy(), b.numpy())
    assert [s.name for s in again._input_spec()] == ["x", "pair_0"]


def test_compiled_functions_and_methods(tmp_path):
    class Both(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc = paddle.nn.Linear(2, 2)

        @paddle.jit.to_static(input_spec=[InputSpec([None, 2])])
        def forward(self, x):
            return self.fc(x)

        @paddle.jit.to_static(input_spec=[InputSpec([None, 2])])
        def shifted(self, x):
            return self.fc(x) + 1.0

    both = Both()
    save(both, f"{tmp_path}/both")
    assert sorted(f.name for f in tmp_path.iterdir()) == ["both.json", "both.pdiparams", "both.shifted.json",
                                                          "both.shifted.pdiparams"]
    again, x = load(f"{tmp_path}/both"), paddle.to_tensor(array(3, 2))
    np.testing.assert_allclose(again(x).numpy(), both(x).numpy(), rtol=1e-6)
    np.testing.assert_allclose(again.shifted(x).numpy(), both(x).numpy() + 1, rtol=1e-6)
    assert len(again.parameters()) == 2

    @paddle.jit.to_static
    def f(x):
        return paddle.tanh(x)

    f(paddle.to_tensor(array(3, 6)))
    with pytest.warns(UserWarning):
        save(f, f"{tmp_path}/f")
    again = load(f"{tmp_path}/f")
    assert again._input_spec()[0].shape == (3, 6)
    for shape in ((3, 6), (1, 6)):                      # a size that was fixed is no limit where no operator minds
        assert np.array_equal(again(array(*shape)).numpy(), np.tanh(array(*shape)))


def test_tied_weights_hooks_and_layers_given_to_to_static(tmp_path):
    class Tied(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.words, self.out = paddle.nn.Embedding(5, 3), paddle.nn.Linear(3, 5)
            self.out.weight_again = self.words.weight

        def forward(self, ids, shift=1.0):
            x = self.words(ids) + shift
            return self.out(x) + paddle.matmul(x, self.out.weight_again, transpose_y=True)

    net = Tied()
    net.register_forward_post_hook(lambda layer, inputs, out: out * 2)
    ids = paddle.to_tensor([[0, 4], [2, 2]])
    save(net, f"{tmp_path}/tied", [InputSpec([None, 2], "int64"), 0.5])
    again = load(f"{tmp_path}/tied")
    assert len(again.parameters()) == 3
    np.testing.assert_allclose(again(ids).numpy(), net(ids, 0.5).numpy(), rtol=1e-5, atol=1e-6)

    compiled = paddle.jit.to_static(Mlp(), input_spec=[InputSpec([None, 3], name="rows")])
    save(compiled, f"{tmp_path}/mlp")
    again = load(f"{tmp_path}/mlp")
    assert [s.name for s in again._input_spec()] == ["rows"]
    np.testing.assert_allclose(again(array(2, 3)).numpy(), by_numpy(compiled, array(2, 3)), rtol=1e-5, atol=1e-6)
    kept, dropped = tmp_path / "kept", tmp_path / "both"
    with pytest.warns(UserWarning):
        save(lambda x: (x + 1, x * 2), str(dropped), [InputSpec([2])])
        save(lambda x: (x + 1, x * 2), str(kept), [InputSpec([2])], output_spec=[1])
    assert load(str(kept))(array(2)).tolist() == (array(2) * 2).tolist()
    assert "pd_op.scale" in str(load(str(kept)).program()) and len(load(str(dropped))(array(2))) == 2


def test_branches_and_loops_that_tensors_decide(tmp_path):
    def f(x, n):
        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
        i = paddle.zeros([], "int64")
        while i < n:
            y = y + x
            i = i + 1
        return y, i

    with pytest.warns(UserWarning):
        save(f, f"{tmp_path}/f", [InputSpec([None, 2]), InputSpec([], "int64")])
    again = load(f"{tmp_path}/f")
    assert {"pd_op.if", "pd_op.while"} <= {op.name() for op in again.program().global_block()}
    for x, n in ((np.ones((1, 2), "float32"), 0), (-np.ones((3, 2), "float32"), 4)):
        y, i = again(paddle.to_tensor(x), paddle.to_tensor(n))
        assert i.item() == n and np.array_equal(y.numpy(), (x * 2 if x.sum() > 0 else x - 1) + n * x)


def test_sizes_that_a_program_reckons(tmp_path):
    def f(x):
        n, m = x.shape
        return paddle.full([n, 2], 3.0), x.reshape([m, n]), paddle.expand(x.unsqueeze(0), [n, n, m])

    with pytest.warns(UserWarning):
        save(f, f"{tmp_path}/f", [InputSpec([None, None])])
    again = load(f"{tmp_path}/f")
    for n, m in ((2, 3), (4, 1)):
        x = array(n, m)
        full, swapped, wide = (t.numpy() for t in again(x))
        assert np.array_equal(full, np.full((n, 2), 3.0)) and np.array_equal(swapped, x.reshape(m, n))
        assert np.array_equal(wide, np.broadcast_to(x, (n, n, m)))


def test_dtypes_and_layers_in_bfloat16(tmp_path):
    net = paddle.nn.Linear(3, 2)
    net.to(dtype="bfloat16")
    save(net, f"{tmp_path}/net", [InputSpec([None, 3], "bfloat16")])
    again = load(f"{tmp_path}/net")
    x = paddle.to_tensor(array(4, 3)).astype("bfloat16")
    assert again(x).dtype == paddle.bfloat16
    assert np.array_equal(again(x).astype("float32").numpy(), net(x).astype("float32").numpy())


# ------------------------------------------------------------------------------------------------- other files
def hand_written(tmp_path, code="1.relu", attributes=()):
    """A program in the real format with one operator between input and output."""
    def tensor(shape):
        return {"#": "0.t_dtensor", "D": [{"#": "0.t_f32"}, shape, "NCHW", [], 0]}

    def named(**given):
        return [{"N": n, "AT": {"#": c, "D": d}} for n, (c, d) in given.items()]

    ops = [{"#": "p", "A": [0, 1, 1, "w"], "DA": [], "O": {"%": 1, "TT": tensor([3])}, "OA": [1, 0, 1], "QA": []},
           {"#": "1.data", "A": named(name=("0.a_str", "x"), shape=("1.a_intarray", [-1, 3]),
                                      dtype=("1.a_dtype", "float32"), place=("1.a_place", [0, 0, ""])),
            "I": [], "O": [{"%": 2, "TT": tensor([-1, 3])}], "OA": []},
           {"#": "1.multiply", "A": [], "I": [{"%": 2}, {"%": 1}], "O": [{"%": 3, "TT": tensor([-1, 3])}], "OA": []},
           {"#": code, "A": list(attributes), "I": [{"%": 3}], "O": [{"%": 4, "TT": tensor([-1, 3])}], "OA": []},
           {"#": "1.fetch", "A": named(name=("0.a_str", "out"), col=("0.a_i32", 0)), "I": [{"%": 4}],
            "O": [{"%": 5, "TT": tensor([-1, 3])}], "OA": []}]
    document = {"base_code": {"magic": "pir", "trainable": True, "version": 4}, "program": {"regions": [
        {"#": "region_0", "blocks": [{"#": "block_0", "args": [], "ops": ops}]}]}}
    (tmp_path / "net.json").write_text(json.dumps(document))
    (tmp_path / "net.pdiparams").write_bytes(combined({"w": np.float32([1, -2, 3])}))
    return f"{tmp_path}/net"


def test_a_file_written_by_hand(tmp_path):
    again = load(hand_written(tmp_path))
    x = array(5, 3)
    assert np.array_equal(again(x).numpy(), np.maximum(x * np.float32([1, -2, 3]), 0))


def test_gradients_flow_through_operators_that_are_several_of_ours(tmp_path):
    again = load(hand_written(tmp_path, "1.softsign"))
    x = array(4, 3)
    again(x).sum().backward()
    slope = 1 / (1 + np.abs(x * np.float32([1, -2, 3]))) ** 2
    np.testing.assert_allclose(again.parameters()[0].grad.numpy(), (x * slope).sum(0), rtol=1e-5)


def test_an_unknown_operator_loads_and_draws_and_fails_by_name_when_it_runs(tmp_path):
    again = load(hand_written(tmp_path, "1.frobnicate_v2"))
    assert "frobnicate_v2" in paddle.viz.program(again.program()).source
    with pytest.raises(NotImplementedError, match=r"pd_op\.frobnicate_v2"):
        again(array(2, 3))
    program, feeds, fetches = paddle.static.load_inference_model(f"{tmp_path}/net", None)
    assert feeds == ["x"] and len(fetches) == 1
    with pytest.raises(NotImplementedError, match=r"pd_op\.frobnicate_v2"):
        paddle.static.Executor().run(program, feed={"x": array(2, 3)}, fetch_list=fetches)


def test_calls_that_do_not_fit(tmp_path):
    again = load(hand_written(tmp_path))
    with pytest.raises(TypeError, match=r"expected 1 inputs \(x\), got 2"):
        again(array(2, 3), array(2, 3))
    with pytest.raises(TypeError, match="a Tensor or an array for input x, got list"):
        again([[1.0]])
    with pytest.raises(ValueError, match=r"name=x.* for tensor 0, got f64\[2, 3\]"):
        again(array(2, 3).astype("float64"))
    with pytest.raises(ValueError, match="expected the name of a saved method, forward, got 'back'"):
        again.program("back")


def test_what_cannot_be_saved_or_loaded(tmp_path):
    net = Mlp()
    for arguments, error, message in [
            ((net, f"{tmp_path}/n"), ValueError, "expected an input_spec for Mlp.forward"),
            ((net, f"{tmp_path}/n/", [InputSpec([1, 3])]), ValueError, "which names no file"),
            ((net, f"{tmp_path}/n", InputSpec([1, 3])), TypeError, "expected input_spec to be a list"),
            ((3, f"{tmp_path}/n", [InputSpec([1, 3])]), TypeError, "expected a Layer or a function, got int"),
            ((lambda x: None, f"{tmp_path}/n", [InputSpec([1, 3])]), ValueError, "to return tensors, got none")]:
        with pytest.raises(error, match=message), pytest.warns(UserWarning) if callable(arguments[0]) and (
                arguments[0] is not net) else pytest.MonkeyPatch.context():
            save(*arguments)
    with pytest.raises(ValueError, match="got 'speed'"):
        save(net, f"{tmp_path}/n", [InputSpec([1, 3])], speed=1)
    with pytest.raises(ValueError, match="number some of the 1 results, got 1"):
        save(net, f"{tmp_path}/n", [InputSpec([1, 3])], output_spec=[1])
    with pytest.raises(InputError, match="the file none.json with a program"):
        load(f"{tmp_path}/none")
    assert not list(tmp_path.iterdir())


def damaged(rng, text):
    """Values of the document replaced by others of their kind, or of another."""
    document = json.loads(text)
    for _ in range(rng.choice((1, 1, 2))):
        node = document["program"]
        while True:
            keys = list(node) if isinstance(node, dict) else range(len(node))
            if not keys:
                break
            key = rng.choice(list(keys))
            if isinstance(node[key], (dict, list)) and node[key] and rng.random() < 0.9:
                node = node[key]
                continue
            old = node[key]
            node[key] = (rng.choice((-1, 0, 1, 2, 3, 4, 5, 7, 1 << 40)) if isinstance(old, int) else
                         rng.choice(("x", "1.add", "1.relu", "0.a_i32", "0.a_f64", "float64", "", "1.fetch", "p"))
                         if isinstance(old, str) else rng.choice((None, [], {}, 1.5)))
            break
    return json.dumps(document)


def test_damaged_models_are_refused_or_run(tmp_path):
    rng, refused = random.Random(3), 0
    path = hand_written(tmp_path)
    text = (tmp_path / "net.json").read_text()
    for _ in range(150):
        (tmp_path / "net.json").write_text(damaged(rng, text))
        try:
            again = load(path)
        except InputError as error:
            assert "net" in str(error)
            refused += 1
            continue
        try:
            again(array(2, 3))
        except (NotImplementedError, TypeError, ValueError):
            pass
    assert refused > 50


def test_saving_leaves_python_as_it_was(tmp_path):
    class Net(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.calls, self.last, self.log = 0, None, []

        def forward(self, x):
            self.calls += 1
            self.last = x * 2.0
            self.log.append(self.last)
            return self.last + 1.0
    net = Net()
    paddle.jit.save(net, str(tmp_path / "net"), input_spec=[InputSpec([None, 2], "float32")])
    assert (net.calls, net.last, net.log) == (0, None, [])
    assert paddle.jit.load(str(tmp_path / "net"))(paddle.ones([1, 2])).tolist() == [[3.0, 3.0]]
