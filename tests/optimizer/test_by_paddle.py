"""Seven steps of every optimizer, against what PaddlePaddle 3.3.1 makes of them."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.optimizer import (
    ASGD,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Lamb,
    Momentum,
    NAdam,
    RAdam,
    RMSProp,
    Rprop,
)
from minipd.regularizer import L1Decay, L2Decay

GRADS = [[0.5, -1.0, 2.0], [1.5, 0.25, -3.0], [-0.5, 0.75, 1.0]] * 2 + [[0.5, -1.0, 2.0]]

# float64 [1, -2, 3] after steps with these gradients, at rate 0.1 unless said.  Paddle keeps betas in float32, hence
# the tolerance.
BY_PADDLE = [
    (Momentum, {}, [-0.292384986, -1.66891917, 2.68796082]),
    (Momentum, {"use_nesterov": True}, [-0.513146457, -1.60202726, 2.51916474]),
    (Momentum, {"weight_decay": 0.2}, [-0.586463225, -0.88534146, 1.47368661]),
    (Momentum, {"weight_decay": L1Decay(0.2)}, [-0.637319386, -1.20798477, 2.22702642]),
    (Momentum, {"use_nesterov": True, "weight_decay": L2Decay(0.2)},
     [-0.768338829, -0.728362994, 1.14177443]),
    (Adagrad, {}, [0.741418841, -1.92971237, 2.91281996]),
    (Adagrad, {"epsilon": 0.1, "initial_accumulator_value": 0.3, "weight_decay": 0.2},
     [0.758759135, -1.82235081, 2.8529954]),
    (RMSProp, {}, [-0.17412541, -1.68860336, 2.59252005]),
    (RMSProp, {"rho": 0.8, "epsilon": 0.01, "momentum": 0.9}, [-1.43061519, -1.40533374, 2.23007112]),
    (RMSProp, {"rho": 0.8, "epsilon": 0.01, "momentum": 0.5, "centered": True, "weight_decay": 0.2},
     [-0.33039468, -1.19455577, 2.29810962]),
    (Adamax, {}, [0.658416609, -1.82632852, 2.90258553]),
    (Adamax, {"beta1": 0.8, "beta2": 0.7, "epsilon": 0.1, "weight_decay": 0.2},
     [0.555044172, -1.64891919, 2.75482498]),
    (Lamb, {}, [-0.982990794, -1.37879012, 2.6321214]),
    (Lamb, {"lamb_weight_decay": 0.3, "beta1": 0.8, "beta2": 0.7, "epsilon": 0.1},
     [-0.1201529, -1.02912367, 1.70584489]),
    (Lamb, {"lamb_weight_decay": 0.3, "exclude_from_weight_decay_fn": lambda p: True},
     [0.534192556, -1.80355309, 2.89754553]),
    (Lamb, {"lamb_weight_decay": 0.3, "always_adapt": True, "exclude_from_weight_decay_fn": lambda p: True},
     [-1.01710688, -1.41619838, 2.71272495]),
    (Adadelta, {}, [0.99832438, -1.99966525, 2.99938098]),
    (Adadelta, {"learning_rate": 0.5, "epsilon": 0.1, "rho": 0.8, "weight_decay": 0.2},
     [-0.0672499818, -1.25549628, 2.07984147]),
    (NAdam, {}, [0.657855853, -1.89976611, 2.88559546]),
    (NAdam, {"beta1": 0.8, "beta2": 0.7, "epsilon": 0.1, "momentum_decay": 0.1, "weight_decay": 0.2},
     [0.616119775, -1.71926326, 2.76444979]),
    (RAdam, {}, [0.678286439, -1.83412405, 2.84041757]),
    (RAdam, {"beta1": 0.8, "beta2": 0.7, "epsilon": 0.1, "weight_decay": 0.2},
     [0.477771089, -1.58500705, 2.43000125]),
    (ASGD, {}, [0.65, -1.9, 2.8]),
    (ASGD, {"batch_num": 2}, [0.65, -1.9, 2.8]),
    (ASGD, {"batch_num": 3, "weight_decay": 0.2}, [0.485256507, -1.60767643, 2.46444104]),
    (Rprop, {}, [0.612, -2.005, 2.724]),
    (Rprop, {"learning_rate_range": (0.09, 0.11), "etas": (0.4, 1.3)}, [0.5, -2.19, 2.5]),
    (Adam, {"amsgrad": True}, [0.534193354, -1.80355375, 2.89754609]),
    (AdamW, {"amsgrad": True}, [0.528817647, -1.79051311, 2.87712971]),
    (Adam, {}, [0.534193354, -1.80355375, 2.89754609]),
    (SGD, {}, [0.65, -1.9, 2.8]),
]


@pytest.mark.parametrize("optimizer,options,values", BY_PADDLE)
def test_seven_steps_are_paddles(optimizer, options, values):
    p = paddle.create_parameter([3], "float64", default_initializer=nn.initializer.Assign(np.array([1.0, -2.0, 3.0])))
    made = optimizer(parameters=[p], **{"learning_rate": 0.1, **options})
    for g in GRADS:
        (p * paddle.to_tensor(g, "float64")).sum().backward()
        made.step()
        made.clear_grad()
    np.testing.assert_allclose(p.numpy(), values, rtol=3e-6)
