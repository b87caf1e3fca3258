"""Differentiation: the tape, the backward engine, and Paddle's `paddle.autograd` names."""

from minipd.autograd.engine import backward, grad
from minipd.autograd.mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled

__all__ = ["backward", "enable_grad", "grad", "is_grad_enabled", "no_grad", "set_grad_enabled"]
