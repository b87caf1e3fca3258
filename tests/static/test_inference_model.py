"""save_inference_model and its parts: files that say what the program does, and errors."""

import json

import numpy as np
import pytest

import minipd as paddle
from minipd import nn, static
from minipd.framework.errors import InputError
from minipd.io.combined_tensors import separated
from minipd.nn import functional as F
from minipd.static.scope import Scope


@pytest.fixture
def softmax_regression():
    """(inputs, outputs, label, executor) of a model written in static mode, with known parameters in the scope."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    rng = np.random.default_rng(0)
    with paddle.static.scope_guard(Scope()), paddle.static.program_guard(main, startup):
        image = paddle.static.data("image", [None, 5])
        label = paddle.static.data("label", [None, 1], "int64")
        w = paddle.static.create_parameter([5, 3], "float32", name="w")
        b = paddle.static.create_parameter([3], "float32", name="b", is_bias=True)
        predict = paddle.nn.functional.softmax(paddle.matmul(image, w) + b)
        loss = paddle.nn.functional.cross_entropy(predict, label)
        exe = paddle.static.Executor()
        exe.run(startup)
        values = {"w": rng.standard_normal((5, 3)).astype("float32"), "b": rng.standard_normal(3).astype("float32")}
        main.set_state_dict(values)
        yield image, predict, (label, loss), exe, values


def expected(x, values):
    z = x @ values["w"] + values["b"]
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_saved_and_loaded_for_any_batch(softmax_regression, tmp_path):
    image, predict, _, exe, values = softmax_regression
    paddle.static.save_inference_model(f"{tmp_path}/deep/net", [image], [predict], exe)
    assert sorted(f.name for f in (tmp_path / "deep").iterdir()) == ["net.json", "net.pdiparams"]
    document = json.loads((tmp_path / "deep/net.json").read_text())
    ops = document["program"]["regions"][0]["blocks"][0]["ops"]
    assert document["base_code"] == {"magic": "pir", "trainable": True, "version": 4}
    assert [o["#"] for o in ops] == ["p", "p", "1.data", "1.matmul", "1.add", "1.softmax", "1.fetch"] or [
        o["#"] for o in ops] == ["1.data", "p", "p", "1.matmul", "1.add", "1.softmax", "1.fetch"]
    stored = separated((tmp_path / "deep/net.pdiparams").read_bytes(), ["w", "b"])
    assert all(np.array_equal(stored[n], values[n]) for n in "wb")
    with paddle.static.scope_guard(Scope()):
        program, feeds, fetches = paddle.static.load_inference_model(f"{tmp_path}/deep/net", exe)
        assert feeds == ["image"]
        for n in (1, 4):
            x = np.random.default_rng(n).standard_normal((n, 5)).astype("float32")
            out, = exe.run(program, feed={"image": x}, fetch_list=fetches)
            np.testing.assert_allclose(out, expected(x, values), rtol=1e-6)


def test_serialized_apart(softmax_regression, tmp_path):
    image, predict, _, exe, values = softmax_regression
    program = paddle.static.serialize_program([image], [predict])
    parameters = paddle.static.serialize_persistables([image], [predict], exe)
    paddle.static.save_to_file(f"{tmp_path}/p", program)
    assert paddle.static.load_from_file(f"{tmp_path}/p") == program
    x = np.ones((2, 5), "float32")
    with paddle.static.scope_guard(Scope()):
        loaded = paddle.static.deserialize_program(program)
        paddle.static.deserialize_persistables(loaded, parameters, exe)
        out, = exe.run(loaded, feed={"image": x}, fetch_list=loaded.targets)
        np.testing.assert_allclose(out, expected(x, values), rtol=1e-6)
    with paddle.static.scope_guard(Scope()):
        loaded, feeds, fetches = paddle.static.load_inference_model(None, exe, model_filename=program,
                                                                    params_filename=parameters)
        out, = exe.run(loaded, feed={feeds[0]: x}, fetch_list=fetches)
        np.testing.assert_allclose(out, expected(x, values), rtol=1e-6)


def test_a_normalized_program_has_what_the_results_need(softmax_regression):
    image, predict, _, exe, values = softmax_regression
    program = paddle.static.normalize_program(paddle.static.default_main_program(), [image], [predict])
    names = [op.name() for op in program.global_block()]
    assert "pd_op.cross_entropy_with_softmax" not in names and names.count("pd_op.data") == 1
    out, = exe.run(program, feed={"image": np.zeros((1, 5), "float32")}, fetch_list=program.targets)
    np.testing.assert_allclose(out, expected(np.zeros((1, 5)), values), rtol=1e-6)


def test_what_cannot_be_saved(softmax_regression, tmp_path):
    image, predict, (label, loss), exe, _ = softmax_regression
    with pytest.raises(ValueError, match="every input that fetch_vars depend on, got none for 'label'"):
        paddle.static.save_inference_model(f"{tmp_path}/n", [image], [loss], exe)
    with pytest.raises(ValueError, match="feed_vars to be inputs"):
        paddle.static.save_inference_model(f"{tmp_path}/n", [predict], [predict], exe)
    with pytest.raises(TypeError, match="a tensor of a static program"):
        paddle.static.save_inference_model(f"{tmp_path}/n", ["image"], [predict], exe)
    with pytest.raises(ValueError, match="got 'colour'"):
        paddle.static.save_inference_model(f"{tmp_path}/n", [image], [predict], exe, colour=1)
    with paddle.static.scope_guard(Scope()), pytest.raises(KeyError, match="run the startup program first"):
        paddle.static.save_inference_model(f"{tmp_path}/n", [image], [predict], exe)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="a place to write"):
        paddle.static.save_inference_model(f"{tmp_path}/file/n", [image], [predict], exe)


def test_files_that_do_not_belong_together(softmax_regression, tmp_path):
    image, predict, _, exe, values = softmax_regression
    paddle.static.save_inference_model(f"{tmp_path}/a", [image], [predict], exe)
    good = (tmp_path / "a.pdiparams").read_bytes()
    (tmp_path / "a.pdiparams").write_bytes(good[:-3])
    with pytest.raises(InputError, match="cut short or damaged"):
        paddle.static.load_inference_model(f"{tmp_path}/a", exe)
    text = (tmp_path / "a.json").read_text()
    (tmp_path / "a.pdiparams").write_bytes(good)
    (tmp_path / "a.json").write_text(text.replace("[5,3]", "[3,5]"))
    with pytest.raises(InputError, match=r"w to be tensor<3x5xf32>, got float32\[5, 3\]"):
        paddle.static.load_inference_model(f"{tmp_path}/a", exe)
    (tmp_path / "a.pdiparams").unlink()
    with pytest.raises(InputError, match="No such file"):
        paddle.static.load_inference_model(f"{tmp_path}/a", exe)
    (tmp_path / "b.pdmodel").touch()
    with pytest.raises(InputError, match="b.pdmodel is there: save the model with Paddle 3"):
        paddle.static.load_inference_model(f"{tmp_path}/b", exe)


def test_a_model_is_saved_as_it_is_in_evaluation(tmp_path):
    paddle.enable_static()
    try:
        with static.scope_guard(static.Scope()), static.program_guard(static.Program(), static.Program()):
            x, label = static.data("x", [None, 3]), static.data("label", [None, 3])
            y = F.dropout(nn.BatchNorm1D(3, epsilon=0.0)(x), 0.5, mode="downscale_in_infer")
            noisy = y + paddle.rand([3])
            paddle.optimizer.SGD(0.1).minimize((y - label).square().mean())
            exe = static.Executor()
            exe.run(static.default_startup_program())
            given = np.arange(6, dtype="float32").reshape(2, 3)
            static.save_inference_model(str(tmp_path / "model"), [x], [y, noisy], exe)
            program, names, results = static.load_inference_model(str(tmp_path / "model"), exe)
            got, one = exe.run(program, feed={names[0]: given}, fetch_list=results)
            other = exe.run(program, feed={names[0]: given}, fetch_list=results)[1]
    finally:
        paddle.disable_static()
    np.testing.assert_allclose(got, given * 0.5, rtol=1e-6)
    assert names == ["x"] and (one != other).all() and (0 <= one - got).all() and (one - got < 1).all()
