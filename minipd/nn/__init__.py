"""Neural networks: layers, their functions, initializers, and gradient clipping (Paddle's `paddle.nn`)."""

from minipd.nn import functional, initializer, utils
from minipd.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from minipd.nn.common import (
    Dropout,
    Embedding,
    Flatten,
    Identity,
    Linear,
    ReLU,
    Sigmoid,
    SiLU,
    Silu,
    Softmax,
    Tanh,
)
from minipd.nn.container import LayerDict, LayerList, ParameterDict, ParameterList, Sequential
from minipd.nn.layer import Layer
from minipd.nn.loss import CrossEntropyLoss, MSELoss
from minipd.nn.norm import RMSNorm
from minipd.nn.rnn import (
    GRU,
    LSTM,
    RNN,
    BiRNN,
    GRUCell,
    LSTMCell,
    RNNCellBase,
    SimpleRNN,
    SimpleRNNCell,
)

__all__ = ["GRU", "LSTM", "RNN", "BiRNN", "GRUCell", "LSTMCell", "RNNCellBase", "SimpleRNN", "SimpleRNNCell",
           "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue", "CrossEntropyLoss", "Dropout", "Embedding",
           "Flatten", "Identity", "Layer", "LayerDict", "LayerList", "Linear", "MSELoss",
           "ParameterDict", "ParameterList", "RMSNorm", "ReLU", "Sequential", "SiLU",
           "Sigmoid", "Silu", "Softmax", "Tanh", "functional", "initializer", "utils"]
