"""An activation goes into the operator before it: one rule for each activation, and each operator with an attribute
for it.

    @activated("fused_gemm_epilogue_pass")
    def product(x, y, bias, *, activation):
        return ops.fused_gemm_epilogue(x, y, bias, activation=activation)

makes the rules  f(product(x, y, bias, activation="none"))  ->  product(x, y, bias, activation="f").
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from minipd.ops.fused.activations import QUICK
from minipd.passes.drr import drr
from minipd.passes.formula import ops

__all__ = ["FORMULAS", "activated"]


def _relu6(z: Any) -> Any:
    """As `nn.functional.relu6` composes it."""
    return ops.where(ops.greater_equal(z, 6.0), 6.0, ops.where(ops.less_equal(z, 0.0), 0.0, z))


def _hardswish(z: Any) -> Any:
    """As `nn.functional.hardswish` composes it."""
    return z * _relu6(z + 3.0) / 6.0


#: name of an activation -> how programs spell it
FORMULAS: dict[str, Callable[[Any], Any]] = {
    "relu": lambda z: ops.relu(z), "sigmoid": lambda z: ops.sigmoid(z), "tanh": lambda z: ops.tanh(z),
    "silu": lambda z: ops.silu(z), "quick_gelu": lambda z: z * ops.sigmoid(z * QUICK),
    "gelu": lambda z: ops.gelu(z, approximate=False), "gelu_tanh": lambda z: ops.gelu(z, approximate=True),
    "relu6": _relu6, "hardswish": _hardswish,
}


def activated(pass_name: str) -> Callable[[Callable], Callable]:
    """Decorator: the rules, of the pass `pass_name`, for a formula with the attribute `activation`."""
    def register(formula: Callable) -> Callable:
        for name, activation in FORMULAS.items():
            drr(pass_name)(_rule(formula, name, activation))
        return formula
    return register


def _rule(formula: Callable, name: str, activation: Callable) -> type:
    given = inspect.signature(formula)
    names = given.replace(parameters=[p for p in given.parameters.values() if p.name != "activation"],
                          return_annotation=inspect.Signature.empty)

    def source(*tensors: Any, **attrs: Any) -> Any:
        return activation(formula(*tensors, **attrs, activation="none"))

    def result(*tensors: Any, **attrs: Any) -> Any:
        return formula(*tensors, **attrs, activation=name)
    for function in (source, result):
        function.__signature__ = names                  # type: ignore[attr-defined]
    title = "".join(word.title() for word in (name, *formula.__name__.split("_")))
    return type(title, (), {"source": source, "result": result, "__doc__": f"{name} of {formula.__doc__}",
                            "__module__": formula.__module__})
