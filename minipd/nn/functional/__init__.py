"""`paddle.nn.functional`: layers as functions, composed of operators."""

from minipd.nn.functional.attention import scaled_dot_product_attention
from minipd.nn.functional.common import (
    check_embedding,
    dropout,
    embedding,
    linear,
    log_softmax,
    relu,
    rms_norm,
    sigmoid,
    silu,
    softmax,
    swiglu,
    tanh,
)
from minipd.nn.functional.loss import (
    check_reduction,
    cross_entropy,
    mse_loss,
    softmax_with_cross_entropy,
)

__all__ = ["check_embedding", "check_reduction", "cross_entropy", "dropout", "embedding", "linear", "log_softmax",
           "mse_loss", "relu", "rms_norm", "scaled_dot_product_attention", "sigmoid", "silu", "softmax",
           "softmax_with_cross_entropy", "swiglu", "tanh"]
