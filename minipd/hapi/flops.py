"""How many multiplications a network takes, layer by layer (Paddle counts a multiplication and an addition as one)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from minipd.framework.tensor import Tensor
from minipd.hapi.summary import call_in_eval
from minipd.nn import activation as act
from minipd.nn import batch_norm, common, conv, dropout, pooling
from minipd.nn.layer import Layer
from minipd.ops.creation import zeros

__all__ = ["flops"]


def _nothing(layer: Layer, x: Tensor, y: Tensor) -> int:
    return 0


def _convolution(layer: Any, x: Tensor, y: Tensor) -> int:
    """Each element of the result: as many as a filter has weights, and one for the bias."""
    weights = math.prod(layer.weight.shape[1:])
    return y.size * (weights + (layer.bias is not None))


def _linear(layer: Any, x: Tensor, y: Tensor) -> int:
    return layer.weight.shape[0] * y.size


def _normalisation(layer: Layer, x: Tensor, y: Tensor) -> int:
    return 0 if layer.training else 2 * x.size


def _average(layer: Layer, x: Tensor, y: Tensor) -> int:
    return y.size


def _adaptive_average(layer: Layer, x: Tensor, y: Tensor) -> int:
    window = math.prod(a // b for a, b in zip(x.shape[2:], y.shape[2:], strict=True))
    return (window + 1) * y.size


#: class -> what counts a call of it
COUNTS: dict[type, Callable] = {
    **dict.fromkeys((conv.Conv1D, conv.Conv2D, conv.Conv3D, conv.Conv1DTranspose, conv.Conv2DTranspose,
                     conv.Conv3DTranspose), _convolution),
    **dict.fromkeys((batch_norm.BatchNorm, batch_norm.BatchNorm1D, batch_norm.BatchNorm2D, batch_norm.BatchNorm3D),
                    _normalisation),
    **dict.fromkeys((act.ReLU, act.ReLU6, act.LeakyReLU, dropout.Dropout), _nothing),
    common.Linear: _linear,
    **dict.fromkeys((pooling.AvgPool1D, pooling.AvgPool2D, pooling.AvgPool3D), _average),
    **dict.fromkeys((pooling.AdaptiveAvgPool1D, pooling.AdaptiveAvgPool2D, pooling.AdaptiveAvgPool3D),
                    _adaptive_average),
}


def flops(net: Layer, input_size: list[int], custom_ops: dict[type, Callable] | None = None,
          print_detail: bool = False) -> int:
    """Print, and return, how many multiplications a call of the network takes.

    The network is called once, in evaluation mode.  Layers that hold no others are counted; those of a class that
    nobody counts are taken for free, which is said.

    Args:
        input_size: the shape of the input.
        custom_ops: class -> function(layer, inputs, output), which adds to `layer.total_ops`.
        print_detail: print a table of the layers too.

    >>> from minipd.nn import Linear, ReLU, Sequential
    >>> n = flops(Sequential(Linear(3, 4), ReLU()), [2, 3])
    <class 'minipd.nn.common.Linear'>'s flops has been counted
    <class 'minipd.nn.activation.ReLU'>'s flops has been counted
    Total Flops: 24     Total Params: 16
    """
    custom_ops = custom_ops or {}
    rows: dict[Layer, tuple[str, str, str, str, str]] = {}
    total = [0, 0]
    leaves = [layer for layer in net.sublayers(include_self=True) if not layer.sublayers()]
    _announce(leaves, custom_ops)

    def note(layer: Any, inputs: tuple, output: Any) -> None:
        x, y = inputs[0], output[0] if isinstance(output, (list, tuple)) else output
        layer.total_ops = 0
        if type(layer) in custom_ops:
            custom_ops[type(layer)](layer, inputs, output)
        else:
            layer.total_ops = COUNTS.get(type(layer), _nothing)(layer, x, y)
        n, params = int(layer.total_ops), sum(t.size for t in layer.state_dict(use_hook=False).values())
        del layer.total_ops
        total[0], total[1] = total[0] + n, total[1] + params
        rows[layer] = layer.full_name(), str(list(x.shape)), str(list(y.shape)), str(params), str(n)

    call_in_eval(net, [zeros(list(input_size))], leaves, note)
    if print_detail:
        print(_table(("Layer Name", "Input Shape", "Output Shape", "Params", "Flops"),
                     [rows[layer] for layer in leaves if layer in rows]))
    print(f"Total Flops: {total[0]}     Total Params: {total[1]}")
    return total[0]


def _announce(leaves: list[Layer], custom_ops: dict[type, Callable]) -> None:
    for kind in dict.fromkeys(map(type, leaves)):
        if kind in custom_ops:
            print(f"Customize Function has been applied to {kind}")
        elif kind in COUNTS:
            print(f"{kind}'s flops has been counted")
        else:
            print(f"Cannot find suitable count function for {kind}. Treat it as zero FLOPs.")


def _table(titles: tuple, rows: list) -> str:
    lines = [titles, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(titles))]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    head, *body = ["|" + "|".join(f" {_centred(cell, width)} " for cell, width in zip(line, widths, strict=True)) + "|"
                   for line in lines]
    return "\n".join([rule, head, rule, *body, rule])


def _centred(text: str, width: int) -> str:
    """In the middle; what cannot be halved goes to the right of an odd text, to the left of an even one.

    >>> _centred("odd", 6), _centred("even", 7)
    (' odd  ', '  even ')
    """
    space = width - len(text)
    left = space // 2 + (space % 2 and len(text) % 2 == 0)
    return " " * left + text + " " * (space - left)
