"""`paddle.nn.utils`: weights under another parametrisation, parameters as one vector, gradients clipped by hand."""

from minipd.nn.utils.gradients import clip_grad_norm_, clip_grad_value_
from minipd.nn.utils.spectral_norm import spectral_norm
from minipd.nn.utils.vectors import parameters_to_vector, vector_to_parameters
from minipd.nn.utils.weight_norm import remove_weight_norm, weight_norm

__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "remove_weight_norm", "spectral_norm",
           "vector_to_parameters", "weight_norm"]
