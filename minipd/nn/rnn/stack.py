"""Layers of scans, each over the outputs of the one below: SimpleRNN, LSTM, GRU."""

from __future__ import annotations

from typing import Any

from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.container import LayerList
from minipd.nn.rnn.cell import GRUCell, LSTMCell, SimpleRNNCell
from minipd.nn.rnn.scan import RNN, BiRNN, alive, scan, time_first
from minipd.ops.cast import cast
from minipd.ops.joining import concat, split, stack

__all__ = ["GRU", "LSTM", "RNNBase", "SimpleRNN"]

CELLS: dict[str, tuple[type, dict]] = {
    "LSTM": (LSTMCell, {}), "GRU": (GRUCell, {}),
    "RNN_TANH": (SimpleRNNCell, {"activation": "tanh"}), "RNN_RELU": (SimpleRNNCell, {"activation": "relu"}),
}
DIRECTIONS = {"forward": 1, "bidirect": 2, "bidirectional": 2}


class RNNBase(LayerList):
    """What SimpleRNN, LSTM and GRU are: `num_layers` layers, each an RNN, or a BiRNN of twice the width.

    Args:
        mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".
        direction: "forward", or "bidirect" ("bidirectional").
        time_major: inputs and outputs are [T, B, ...] instead of [B, T, ...].
        dropout: of the outputs of every layer but the last, while training.
        weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr: of every cell; see there.
        proj_size: of an LSTM; see LSTMCell.

    Called with (inputs [B, T, in], initial_states=None, sequence_length=None), it returns the last layer's outputs
    [B, T, D * H], zeros behind the end of a sequence, and the states after each one's last step,
    [num_layers * D, B, H], where D is the number of directions; for an LSTM (h, c).  Initial states have that form too.

    Raises: ValueError for an unknown mode or direction, and for inputs or states of another shape.
    """

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, direction: str = "forward",
                 time_major: bool = False, dropout: float = 0.0, weight_ih_attr: Any = None,
                 weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None, proj_size: int = 0):
        super().__init__()
        if mode not in CELLS:
            raise ValueError(f"{type(self).__name__}: expected a mode of {', '.join(CELLS)}, got {mode!r}")
        if direction not in DIRECTIONS:
            raise ValueError(f"{type(self).__name__}: expected a direction of {', '.join(DIRECTIONS)}, got "
                             f"{direction!r}")
        if not 1 <= num_layers <= 10_000:
            raise ValueError(f"{type(self).__name__}: expected num_layers from 1 to 10000, got {num_layers}")
        self.mode, self.input_size, self.hidden_size, self.proj_size = mode, input_size, hidden_size, proj_size
        self.num_layers, self.num_directions, self.time_major = num_layers, DIRECTIONS[direction], time_major
        self.dropout = dropout
        kind, options = CELLS[mode]
        options = {**options, "weight_ih_attr": weight_ih_attr, "weight_hh_attr": weight_hh_attr,
                   "bias_ih_attr": bias_ih_attr, "bias_hh_attr": bias_hh_attr}
        if mode == "LSTM":
            options["proj_size"] = proj_size
        width = input_size
        for _ in range(num_layers):
            first, *back = (kind(width, hidden_size, **options) for _ in range(self.num_directions))
            self.append(BiRNN(first, back[0], time_major) if back else RNN(first, time_major=time_major))
            width = self.num_directions * (proj_size or hidden_size)
        for i, layer in enumerate(self):
            for suffix, cell in zip(("", "_reverse"), layer.children(), strict=False):
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                    setattr(self, f"{name}_l{i}{suffix}", getattr(cell, name))

    def flatten_parameters(self) -> None:
        """Nothing: on Paddle's GPUs it packs the parameters into one block."""

    def forward(self, inputs: Tensor, initial_states: Any = None,
                sequence_length: Tensor | None = None) -> tuple[Tensor, Any]:
        x = time_first(inputs, self.time_major)
        before = self._states(inputs, initial_states)
        after = []
        for i, layer in enumerate(self):
            outputs = []
            for d, cell in enumerate(layer.children()):
                out, last = scan(cell, x, before[i * self.num_directions + d], sequence_length, reverse=d == 1)
                outputs.append(out)
                after.append(last)
            x = outputs[0] if len(outputs) == 1 else concat(outputs, -1)
            if sequence_length is not None:
                x = x * cast(alive(sequence_length, x.shape[0]), x.dtype)
            if self.dropout and i < self.num_layers - 1:
                x = F.dropout(x, self.dropout, training=self.training)
        out = time_first(x, self.time_major)
        if self.mode == "LSTM":
            return out, tuple(stack(kind) for kind in zip(*after, strict=True))
        return out, stack(after)

    def _states(self, inputs: Tensor, given: Any) -> list:
        """The states before the first step of each cell, in the order of layers and directions."""
        if inputs.ndim != 3 or inputs.shape[2] != self.input_size:
            order = "[steps, batch" if self.time_major else "[batch, steps"
            raise ValueError(f"{type(self).__name__}: expected inputs {order}, {self.input_size}], got "
                             f"{describe(inputs.payload)}")
        batch = inputs.shape[1 if self.time_major else 0]
        count = self.num_layers * self.num_directions
        cell = next(self[0].children())
        if given is None:
            return [cell.get_initial_states(inputs, batch_dim_idx=int(self.time_major))] * count
        widths = [s[-1] for s in cell.state_shape] if self.mode == "LSTM" else [self.hidden_size]
        parts = list(given) if isinstance(given, (tuple, list)) else [given]
        if [getattr(p, "shape", None) for p in parts] != [[count, batch, w] for w in widths]:
            names = "(h, c)" if self.mode == "LSTM" else "h"
            raise ValueError(f"{type(self).__name__}: expected initial states {names} of shape "
                             f"{' and '.join(str([count, batch, w]) for w in widths)} (layers * directions, batch, "
                             f"width), got {', '.join(describe(getattr(p, 'payload', p)) for p in parts)}")
        cells = [[s.squeeze(0) for s in split(p, count, 0)] for p in parts]
        return list(zip(*cells, strict=True)) if self.mode == "LSTM" else cells[0]

    def extra_repr(self) -> str:
        shown = [f"{self.input_size}, {self.hidden_size}"]
        shown += [f"num_layers={self.num_layers}"] * (self.num_layers != 1)
        if self.time_major:
            shown.append(f"time_major={self.time_major}")
        shown += [f"dropout={self.dropout}"] * bool(self.dropout)
        return ", ".join(shown)


class SimpleRNN(RNNBase):
    """Layers of SimpleRNNCell.   activation: "tanh" or "relu".  See RNNBase for arguments and shapes."""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, direction: str = "forward",
                 time_major: bool = False, dropout: float = 0.0, activation: str = "tanh", weight_ih_attr: Any = None,
                 weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None,
                 name: str | None = None):
        if activation not in ("tanh", "relu"):
            raise ValueError(f"SimpleRNN: expected the activation tanh or relu, got {activation!r}")
        super().__init__(f"RNN_{activation.upper()}", input_size, hidden_size, num_layers, direction, time_major,
                         dropout, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)


class LSTM(RNNBase):
    """Layers of LSTMCell.  See RNNBase for arguments and shapes.

    >>> from minipd.ops.creation import ones
    >>> y, (h, c) = LSTM(16, 32, num_layers=2, direction="bidirect")(ones([4, 23, 16]))
    >>> y.shape, h.shape, c.shape
    (paddle.Size([4, 23, 64]), paddle.Size([4, 4, 32]), paddle.Size([4, 4, 32]))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, direction: str = "forward",
                 time_major: bool = False, dropout: float = 0.0, weight_ih_attr: Any = None,
                 weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None, proj_size: int = 0,
                 name: str | None = None):
        super().__init__("LSTM", input_size, hidden_size, num_layers, direction, time_major, dropout, weight_ih_attr,
                         weight_hh_attr, bias_ih_attr, bias_hh_attr, proj_size)


class GRU(RNNBase):
    """Layers of GRUCell.  See RNNBase for arguments and shapes."""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, direction: str = "forward",
                 time_major: bool = False, dropout: float = 0.0, weight_ih_attr: Any = None,
                 weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None,
                 name: str | None = None):
        super().__init__("GRU", input_size, hidden_size, num_layers, direction, time_major, dropout, weight_ih_attr,
                         weight_hh_attr, bias_ih_attr, bias_hh_attr)
