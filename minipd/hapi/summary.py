"""The table of a network's layers: the shapes that go in and come out, and how many parameters each has."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minipd.framework.context import using
from minipd.framework.tensor import Tensor
from minipd.nn.container import LayerList, Sequential
from minipd.nn.layer import Layer
from minipd.nn.rnn import RNNBase
from minipd.ops.creation import zeros

__all__ = ["summary"]

WIDTHS = (15, 20, 20, 15)                   # of the columns, at least
TITLES = ("Layer (type)", "Input Shape", "Output Shape", "Param #")
BYTES, MEGABYTE = 4, 1024 ** 2              # of a float32; and what sizes are counted in


class _Row(NamedTuple):
    """One layer that was called."""

    name: str
    ins: Any
    outs: Any
    params: int
    trainable: int

    def cells(self) -> tuple[str, str, str, str]:
        return self.name, str(self.ins), str(self.outs), f"{self.params:,}"


def summary(net: Layer, input_size: Any = None, dtypes: Any = None, input: Any = None) -> dict[str, np.int64]:
    """Print the table, and return how many parameters there are.

    The network is called once, in evaluation mode.  Layers appear in the order in which they are called, by their class
    and the number in their name; Sequential and LayerList, a network that holds other layers, and the cells of an LSTM
    or its like do not.

    Args:
        input_size: the shape of the input, or an InputSpec, or a list of them; None and -1 stand for a batch of 1.
        dtypes: of the inputs, one or a list; float32 unless given.
        input: instead of shapes, what to call the network with: a tensor, or a list or dict as its only argument.

    Returns: {"total_params", "trainable_params"}.
    Raises: ValueError without input_size and input, and for sizes that are no sizes.

    >>> from minipd.nn import Linear
    >>> summary(Linear(3, 4), (2, 3))["total_params"]           # doctest: +ELLIPSIS
    -------...
     Layer (type)       Input Shape          Output Shape         Param #...
    ===========================================================================
    ...[[2, 3]]              [2, 4]              16...
    np.int64(16)
    """
    inputs = _inputs(input_size, dtypes) if input is None else [input]
    rows = called_layers(net, inputs)
    total, trainable = sum(row.params for row in rows), sum(row.trainable for row in rows)
    elements_in = sum(math.prod(shape) for shape in _each_shape(_shapes(inputs)))
    elements_out = sum(math.prod(shape) for row in rows for shape in _each_shape(row.outs))
    print(_table(rows, total, trainable, elements_in, elements_out))
    return {"total_params": np.int64(total), "trainable_params": np.int64(trainable)}


def called_layers(net: Layer, inputs: Sequence[Any]) -> list[_Row]:
    """Call the network, and say which layers were called, with what shapes: each once, with the last shapes."""
    rows: dict[Layer, _Row] = {}

    def note(layer: Layer, ins: Any, outs: Any) -> None:
        state = layer.state_dict(include_sublayers=False, use_hook=False).values()
        number = int(layer.full_name().rpartition("_")[2]) + 1
        rows[layer] = _Row(f"{type(layer).__name__}-{number}", _shapes(list(ins)), _shapes(outs),
                           sum(t.size for t in state), sum(t.size for t in state if not t.stop_gradient))

    layers = net.sublayers(include_self=True)
    cells = {part for layer in layers if isinstance(layer, RNNBase) for part in layer.sublayers()}
    layers = [layer for layer in layers if isinstance(layer, RNNBase) or layer not in cells and not isinstance(
        layer, (Sequential, LayerList)) and (layer is not net or not layer.sublayers())]
    call_in_eval(net, inputs, layers, note)
    return list(rows.values())


def call_in_eval(net: Layer, inputs: Sequence[Any], layers: Sequence[Layer], note: Callable) -> None:
    """Call the network in evaluation mode, with `note` as a hook of these layers.

    Each layer is left in the mode that it was in, and without the hook, whatever the call raises.
    """
    modes = [(layer, layer.training) for layer in net.sublayers(include_self=True)]
    hooks = [layer.register_forward_post_hook(note) for layer in layers]
    net.eval()
    try:
        with using(grad=False):
            net(*inputs)
    finally:
        for hook in hooks:
            hook.remove()
        for layer, training in modes:
            layer.training = training


def _inputs(input_size: Any, wanted: Any) -> list[Tensor]:
    """Zeros of the shapes."""
    if input_size is None:
        raise ValueError("summary: expected input_size or input, got neither")
    several = isinstance(input_size, list) and input_size and not isinstance(input_size[0], (int, type(None)))
    sizes = input_size if several else [input_size]
    wanted = list(wanted) if isinstance(wanted, (list, tuple)) else [wanted] * len(sizes)
    if len(wanted) != len(sizes):
        raise ValueError(f"summary: expected a dtype for each of {len(sizes)} inputs, got {len(wanted)}")
    out = []
    for size, dtype in zip(sizes, wanted, strict=True):
        shape = [size] if isinstance(size, int) else list(getattr(size, "shape", size))
        shape = [1 if i == 0 and d in (None, -1) else d for i, d in enumerate(shape)]
        if not all(isinstance(d, int) and d > 0 for d in shape):
            raise ValueError(f"summary: expected sizes greater than 0 (None or -1 for the batch), got {size}")
        out.append(zeros(shape, dtype or getattr(size, "dtype", "float32")))
    return out


def _shapes(x: Any) -> Any:
    """The shapes of tensors, in lists as they are in tuples, lists and dicts; None for all else."""
    if isinstance(x, Tensor):
        return list(x.shape)
    if isinstance(x, dict):
        x = list(x.values())
    return [_shapes(each) for each in x] if isinstance(x, (list, tuple)) else None


def _each_shape(shapes: Any) -> Iterator[list[int]]:
    """The shapes in a nested list of them."""
    if shapes is not None:
        if all(isinstance(d, int) for d in shapes):
            yield shapes
        else:
            for each in shapes:
                yield from _each_shape(each)


def _table(rows: list[_Row], total: int, trainable: int, elements_in: int, elements_out: int) -> str:
    cells = [TITLES, *(row.cells() for row in rows)]
    widths = [max(least, *(len(line[i]) for line in cells)) for i, least in enumerate(WIDTHS)]
    head, *body = [" ".join(f"{cell:^{width}}" for cell, width in zip(line, widths, strict=True))
                   for line in cells]
    thin, thick = ("-" * (sum(widths) + 5), "=" * (sum(widths) + 5))
    size_in, size_out, size_params = (n * BYTES / MEGABYTE for n in (elements_in, 2 * elements_out, total))
    return "\n".join([
        thin, head, thick, *body, thick,
        f"Total params: {total:,}", f"Trainable params: {trainable:,}",
        f"Non-trainable params: {total - trainable:,}", thin,
        f"Input size (MB): {size_in:.2f}", f"Forward/backward pass size (MB): {size_out:.2f}",
        f"Params size (MB): {size_params:.2f}", f"Estimated Total Size (MB): {size_in + size_out + size_params:.2f}",
        thin, ""])
