"""Files that PaddlePaddle 3.3.1 has written: they are read, and training goes on where it stood."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.optimizer import ASGD, Adadelta, Adamax, AdamW, Lamb, Momentum, NAdam, RAdam, RMSProp, Rprop, lr

FILES = Path(__file__).parents[1] / "golden" / "paddle_files"
AFTER = json.loads((FILES / "after.json").read_text())
X = np.linspace(-1, 1, 12).reshape(4, 3).astype("float32")
MADE = {
    "momentum": lambda ps: Momentum(0.1, 0.9, ps), "nadam": lambda ps: NAdam(0.01, parameters=ps),
    "radam": lambda ps: RAdam(0.01, beta2=0.8, parameters=ps), "asgd": lambda ps: ASGD(0.1, 2, ps),
    "lamb": lambda ps: Lamb(0.01, parameters=ps), "rmsprop": lambda ps: RMSProp(0.01, parameters=ps, centered=True),
    "adamax": lambda ps: Adamax(0.01, parameters=ps), "adadelta": lambda ps: Adadelta(0.5, parameters=ps),
    "rprop": lambda ps: Rprop(0.01, parameters=ps),
}


def model():
    made = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    for i, layer in enumerate(made):
        layer.weight.name, layer.bias.name = f"linear_{i}.w_0", f"linear_{i}.b_0"
    return made


def train(net, optimizer, schedule, steps):
    for _ in range(steps):
        (net(paddle.to_tensor(X)) ** 2).mean().backward()
        optimizer.step()
        optimizer.clear_grad()
        if schedule is not None:
            schedule.step()


def assert_after(name, net):
    for p, want in zip(net.parameters(), AFTER[name], strict=True):
        np.testing.assert_allclose(p.numpy(), want, rtol=2e-5, atol=1e-7)


def test_adamw_goes_on():
    net = model()
    net.set_state_dict(paddle.load(FILES / "model.pdparams"))
    schedule = lr.StepDecay(0.1, 2)
    adamw = AdamW(schedule, parameters=net.parameters(), weight_decay=0.1)
    adamw.set_state_dict(paddle.load(FILES / "adamw.pdopt"))
    assert int(adamw.scalars()[1]) == 3 and schedule.last_epoch == 3
    train(net, adamw, schedule, 2)
    assert_after("adamw", net)


@pytest.mark.parametrize("name", MADE)
def test_optimizers_go_on(name):
    """Also where Paddle has numbered the entries, for optimizers that the parameters had before."""
    net, both = model(), paddle.load(FILES / f"{name}.pd")
    optimizer = MADE[name](net.parameters())
    net.set_state_dict(both["model"])
    optimizer.set_state_dict(both["optimizer"])
    train(net, optimizer, None, 2)
    assert_after(name, net)


def test_nested_values_and_protocol_2():
    back = paddle.load(FILES / "nested_2.pd")
    assert back["x"].dtype == "bfloat16" and back["x"].tolist() == [1.5, -2.0]
    plain, (seven, empty) = back["nested"]["list"][:5], back["nested"]["list"][5]
    assert plain == [1, 2.5, "text", None, True] and seven.item() == 7 and empty == []
    assert back["array"].dtype == "int16" and back["scalar"] == np.float32(0.5)
    assert paddle.load(FILES / "nested_2.pd", return_numpy=True)["x"].dtype == "uint16"


def test_the_binary_form():
    file = FILES / "tensor.bin"
    assert paddle.load(file).tolist() == [[1, 2], [3, 4]]
    assert file.read_bytes() == written(paddle.load(file), use_binary_format=True)


def test_a_state_dict_is_written_to_the_byte_as_paddle_does():
    assert written(paddle.load(FILES / "model.pdparams")) == (FILES / "model.pdparams").read_bytes()


def written(obj, **options):
    file = io.BytesIO()
    paddle.save(obj, file, **options)
    return file.getvalue()
