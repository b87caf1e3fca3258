"""The names of `paddle.static.nn`."""

from minipd.static.choices import case, switch_case
from minipd.static.control_flow import cond
from minipd.static.loops import while_loop
from minipd.static.nn import control_flow
from minipd.static.nn.common import fc
from minipd.static.nn.convolution import conv2d, conv2d_transpose, conv3d, conv3d_transpose
from minipd.static.nn.lookup import bilinear_tensor_product, embedding, prelu, row_conv
from minipd.static.nn.normalization import batch_norm, group_norm, instance_norm, layer_norm, spectral_norm
from minipd.static.pylayer import static_pylayer

__all__ = ["batch_norm", "bilinear_tensor_product", "case", "cond", "control_flow", "conv2d", "conv2d_transpose",
           "conv3d", "conv3d_transpose", "embedding", "fc", "group_norm", "instance_norm", "layer_norm", "prelu",
           "row_conv", "spectral_norm", "static_pylayer", "switch_case", "while_loop"]
