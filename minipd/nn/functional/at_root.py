"""Functions of `nn.functional` that are names of the root too, as in Paddle."""

from minipd.nn.functional.norm import group_norm, layer_norm

__all__ = ["group_norm", "layer_norm"]
