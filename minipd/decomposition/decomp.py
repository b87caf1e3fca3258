"""`paddle.decomposition.decomp`: the same names, in the file where Paddle has them."""

from minipd.decomposition.decompose_pass import decompose
from minipd.decomposition.rules import call_decomp_rule, has_decomp_rule

__all__ = ["call_decomp_rule", "decompose", "has_decomp_rule"]
