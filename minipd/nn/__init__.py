"""Neural networks: layers, their functions, initializers, and gradient clipping (Paddle's `paddle.nn`)."""

from minipd.framework.tensor import Parameter
from minipd.nn import conv, functional, initializer, padding, pooling, utils, vision
from minipd.nn.activation import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Maxout,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    RReLU,
    Sigmoid,
    SiLU,
    Silu,
    Softmax,
    Softmax2D,
    Softplus,
    Softshrink,
    Softsign,
    Swish,
    Tanh,
    Tanhshrink,
    ThresholdedReLU,
)
from minipd.nn.batch_norm import BatchNorm, BatchNorm1D, BatchNorm2D, BatchNorm3D, SyncBatchNorm
from minipd.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from minipd.nn.common import Bilinear, Embedding, Flatten, Identity, Linear, Unflatten
from minipd.nn.container import LayerDict, LayerList, ParameterDict, ParameterList, Sequential
from minipd.nn.conv import *  # noqa: F403
from minipd.nn.decode import BeamSearchDecoder, dynamic_decode
from minipd.nn.distance import CosineSimilarity, PairwiseDistance
from minipd.nn.dropout import AlphaDropout, Dropout, Dropout2D, Dropout3D, FeatureAlphaDropout
from minipd.nn.layer import Layer
from minipd.nn.loss import (
    AdaptiveLogSoftmaxWithLoss,
    BCELoss,
    BCEWithLogitsLoss,
    CosineEmbeddingLoss,
    CrossEntropyLoss,
    CTCLoss,
    GaussianNLLLoss,
    HingeEmbeddingLoss,
    HSigmoidLoss,
    KLDivLoss,
    L1Loss,
    MarginRankingLoss,
    MSELoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    NLLLoss,
    PoissonNLLLoss,
    RNNTLoss,
    SmoothL1Loss,
    SoftMarginLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
from minipd.nn.norm import (
    GroupNorm,
    InstanceNorm1D,
    InstanceNorm2D,
    InstanceNorm3D,
    LayerNorm,
    LocalResponseNorm,
    RMSNorm,
    SpectralNorm,
)
from minipd.nn.padding import *  # noqa: F403
from minipd.nn.pooling import *  # noqa: F403
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
from minipd.nn.transformer import (
    MultiHeadAttention,
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from minipd.nn.vision import *  # noqa: F403

#: other names for the same
Module, ModuleDict, ModuleList = Layer, LayerDict, LayerList

__all__ = ["AdaptiveLogSoftmaxWithLoss", "AlphaDropout", "BCELoss", "BCEWithLogitsLoss", "BatchNorm", "BatchNorm1D",
           "BatchNorm2D", "BatchNorm3D", "BeamSearchDecoder", "BiRNN", "Bilinear", "CELU", "CTCLoss",
           "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue", "CosineEmbeddingLoss", "CosineSimilarity",
           "CrossEntropyLoss", "Dropout", "Dropout2D", "Dropout3D", "ELU", "Embedding", "FeatureAlphaDropout",
           "Flatten", "GELU", "GLU", "GRU", "GRUCell", "GaussianNLLLoss", "GroupNorm", "HSigmoidLoss", "Hardshrink",
           "Hardsigmoid", "Hardswish", "Hardtanh", "HingeEmbeddingLoss", "Identity", "InstanceNorm1D", "InstanceNorm2D",
           "InstanceNorm3D", "KLDivLoss", "L1Loss", "LSTM", "LSTMCell", "Layer", "LayerDict", "LayerList", "LayerNorm",
           "LeakyReLU", "Linear", "LocalResponseNorm", "LogSigmoid", "LogSoftmax", "MSELoss", "MarginRankingLoss",
           "Maxout", "Mish", "Module", "ModuleDict", "ModuleList", "MultiHeadAttention", "MultiLabelMarginLoss",
           "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PReLU", "PairwiseDistance", "Parameter",
           "ParameterDict", "ParameterList", "PoissonNLLLoss", "RMSNorm", "RNN", "RNNCellBase", "RNNTLoss", "RReLU",
           "ReLU", "ReLU6", "SELU", "Sequential", "SiLU", "Sigmoid", "Silu", "SimpleRNN", "SimpleRNNCell",
           "SmoothL1Loss", "SoftMarginLoss", "Softmax", "Softmax2D", "Softplus", "Softshrink", "Softsign",
           "SpectralNorm", "Swish", "SyncBatchNorm", "Tanh", "Tanhshrink", "ThresholdedReLU", "Transformer",
           "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
           "TripletMarginLoss", "TripletMarginWithDistanceLoss", "Unflatten", "conv", "dynamic_decode", "functional",
           "initializer", "padding", "pooling", "utils", "vision",
           *conv.__all__, *padding.__all__, *pooling.__all__, *vision.__all__]
