"""Differentiation: the tape, the backward engine, and Paddle's `paddle.autograd` names."""

from minipd.autograd.engine import backward, grad
from minipd.autograd.functional import hessian, jacobian
from minipd.autograd.mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from minipd.autograd.py_layer import PyLayer, PyLayerContext
from minipd.autograd.recompute import recompute
from minipd.autograd.saved_hooks import saved_tensors_hooks

__all__ = ["PyLayer", "PyLayerContext", "backward", "enable_grad", "grad", "hessian", "is_grad_enabled", "jacobian",
           "no_grad", "recompute", "saved_tensors_hooks", "set_grad_enabled"]
