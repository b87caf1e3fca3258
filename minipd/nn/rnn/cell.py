"""Recurrent cells: one step, from an input and the states before it to an output and the states after it.

A step is cut in two, so that a scan can do the first half of all steps at once: `project`, what comes of the input
alone, one matrix product; and `step`, which needs the states.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.nn.initializer import Constant, Uniform
from minipd.nn.layer import Layer
from minipd.ops.activation import relu
from minipd.ops.creation import full
from minipd.ops.elementary import tanh
from minipd.ops.linalg import matmul
from minipd.ops.recurrent import GruUnit, LstmUnit

__all__ = ["GRUCell", "LSTMCell", "RNNCellBase", "SimpleRNNCell"]

ACTIVATIONS: dict[str, Callable] = {"tanh": tanh, "relu": relu}


def map_states(function: Callable, *states: Any) -> Any:
    """The function of the tensors at the same place in nested tuples (lists, dicts), as tuples (lists, dicts) again.

    >>> map_states(lambda a, b: a + b, (1, (2, 3)), (10, (20, 30)))
    (11, (22, 33))
    """
    first = states[0]
    if isinstance(first, dict):
        return {key: map_states(function, *(s[key] for s in states)) for key in first}
    if not isinstance(first, (tuple, list)):
        return function(*states)
    mapped = [map_states(function, *each) for each in zip(*states, strict=True)]
    if hasattr(first, "_fields"):
        return type(first)(*mapped)
    return mapped if isinstance(first, list) else tuple(mapped)


class RNNCellBase(Layer):
    """What a cell of your own derives from.  It defines `forward(inputs, states) -> (outputs, new states)`, and
    `state_shape`, without the batch, where states need not be given."""

    @property
    def state_shape(self) -> Any:
        """The shape of a state without the batch, or a tuple of them."""
        raise NotImplementedError(f"{type(self).__name__} defines no state_shape: define it, or pass initial states")

    @property
    def state_dtype(self) -> Any:
        """The dtype of the states, or a tuple of them."""
        raise NotImplementedError(f"{type(self).__name__} defines no state_dtype: define it, or pass initial states")

    def get_initial_states(self, batch_ref: Any, shape: Any = None, dtype: Any = None, init_value: float = 0.0,
                           batch_dim_idx: int = 0) -> Any:
        """States before the first step, [batch, *shape] filled with `init_value`.

        batch_ref: a tensor, or a structure of them, whose dimension `batch_dim_idx` is the batch.
        shape, dtype: one, or a structure of them; the cell's `state_shape`, and the reference's dtype, unless given.
        """
        while isinstance(batch_ref, (tuple, list)):
            batch_ref = batch_ref[0]
        batch = batch_ref.shape[batch_dim_idx]

        def state(shape: Any, dtype: Any) -> Any:
            if shape and not isinstance(shape[0], int):
                each = dtype if isinstance(dtype, (tuple, list)) else [dtype] * len(shape)
                return tuple(state(s, d) for s, d in zip(shape, each, strict=True))
            sizes = shape[1:] if shape and shape[0] == -1 else shape        # -1 may stand for the batch
            return full([batch, *sizes], init_value, batch_ref.dtype if dtype is None else dtype)
        return state(self.state_shape if shape is None else shape, dtype)


class Gated(RNNCellBase):
    """What the three cells share: `gates` blocks of rows in weight_ih [gates * H, in] and weight_hh [gates * H, H].

    Weights start between -1/sqrt(H) and 1/sqrt(H).  An attribute False stands for a weight of ones, or a bias of zeros,
    which is not trained.
    """

    gates = 1
    bias_stays = False          # bias_hh is added to what the state gives, in every step, and not to the input

    def __init__(self, input_size: int, hidden_size: int, recurrent_size: int, weight_ih_attr: Any, weight_hh_attr: Any,
                 bias_ih_attr: Any, bias_hh_attr: Any):
        super().__init__()
        if hidden_size <= 0:
            raise ValueError(f"{type(self).__name__}: expected a hidden_size greater than 0, got {hidden_size}")
        self.input_size, self.hidden_size = input_size, hidden_size
        rows = self.gates * hidden_size
        self.weight_ih = self._weight([rows, input_size], weight_ih_attr)
        self.weight_hh = self._weight([rows, recurrent_size], weight_hh_attr)
        self.bias_ih = self._weight([rows], bias_ih_attr, True)
        self.bias_hh = self._weight([rows], bias_hh_attr, True)

    def _weight(self, shape: list[int], attr: Any, is_bias: bool = False) -> Any:
        bound = 1 / math.sqrt(self.hidden_size)
        if attr is not False:
            return self.create_parameter(shape, attr, is_bias=is_bias, default_initializer=Uniform(-bound, bound))
        fixed = self.create_parameter(shape, None, is_bias=is_bias,
                                      default_initializer=Constant(0.0 if is_bias else 1.0))
        fixed.stop_gradient = True
        return fixed

    def project(self, inputs: Tensor) -> Tensor:
        """What comes of inputs [..., in] alone: [..., gates * H]."""
        bias = self.bias_ih if self.bias_stays else self.bias_ih + self.bias_hh
        return matmul(inputs, self.weight_ih, transpose_y=True) + bias

    def recur(self, state: Tensor) -> Tensor:
        """What comes of the state alone: [..., gates * H]."""
        out = matmul(state, self.weight_hh, transpose_y=True)
        return out + self.bias_hh if self.bias_stays else out

    def step(self, projected: Tensor, states: Any) -> tuple[Tensor, Any]:
        """(output, new states) of a step whose input is projected already."""
        raise NotImplementedError

    def forward(self, inputs: Tensor, states: Any = None) -> tuple[Tensor, Any]:
        states = self.get_initial_states(inputs) if states is None else states
        self.check(inputs, states)
        return self.step(self.project(inputs), states)

    def check(self, inputs: Tensor, states: Any) -> None:
        """ValueError unless inputs are [..., input_size], and states as many, and as wide, as this cell's."""
        if inputs.ndim < 2 or inputs.shape[-1] != self.input_size:
            raise ValueError(f"{type(self).__name__}: expected inputs of {self.input_size} features in the last "
                             f"dimension, got {describe(inputs.payload)}")
        widths = [shape[-1] for shape in ([self.state_shape] if isinstance(self.state_shape[0], int)
                                          else self.state_shape)]
        given = list(states) if isinstance(states, (tuple, list)) else [states]
        if [getattr(s, "shape", (None,))[-1] for s in given] != widths:
            raise ValueError(f"{type(self).__name__}: expected {len(widths)} states, [batch, width] with width "
                             f"{' and '.join(map(str, widths))}, got "
                             f"{', '.join(describe(getattr(s, 'payload', s)) for s in given)}")

    @property
    def state_shape(self) -> Any:
        """The shape of the state without the batch."""
        return (self.hidden_size,)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


class SimpleRNNCell(Gated):
    """h' = act(W_ih x + b_ih + W_hh h + b_hh); the output is h'.   activation: "tanh" or "relu" (Elman 1990)

    x [B, in], h [B, H] -> [B, H], [B, H]
    """

    def __init__(self, input_size: int, hidden_size: int, activation: str = "tanh", weight_ih_attr: Any = None,
                 weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None,
                 name: str | None = None):
        super().__init__(input_size, hidden_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr,
                         bias_hh_attr)
        if activation not in ACTIVATIONS:
            raise ValueError(f"SimpleRNNCell: expected the activation tanh or relu, got {activation!r}")
        self.activation = activation

    def step(self, projected: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        h = ACTIVATIONS[self.activation](projected + self.recur(states))
        return h, h

    def extra_repr(self) -> str:
        return super().extra_repr() + (f", activation={self.activation}" if self.activation != "tanh" else "")


class LSTMCell(Gated):
    """i, f, o = sigmoid(W x + b + U h + d), g = tanh(...), c' = f c + i g, h' = o tanh(c').  (Gers et al. 2000)

    The blocks of rows stand in the order i, f, g, o.  The output is h'.
    x [B, in], (h [B, H], c [B, H]) -> [B, H], (h', c')
    proj_size: h' is o tanh(c') times weight_ho [H, proj_size], and has that width (Sak et al. 2014).
    """

    gates = 4

    def __init__(self, input_size: int, hidden_size: int, weight_ih_attr: Any = None, weight_hh_attr: Any = None,
                 bias_ih_attr: Any = None, bias_hh_attr: Any = None, proj_size: int = 0, name: str | None = None):
        if not 0 <= proj_size < hidden_size:
            raise ValueError(f"LSTMCell: expected a proj_size in 0 .. hidden_size - 1 = {hidden_size - 1}, got "
                             f"{proj_size}")
        super().__init__(input_size, hidden_size, proj_size or hidden_size, weight_ih_attr, weight_hh_attr,
                         bias_ih_attr, bias_hh_attr)
        self.proj_size = proj_size
        if proj_size:
            self.weight_ho = self._weight([hidden_size, proj_size], weight_hh_attr)

    def step(self, projected: Tensor, states: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        h, c = states
        h, c, _ = LstmUnit(projected + self.recur(h), c)
        if self.proj_size:
            h = matmul(h, self.weight_ho)
        return h, (h, c)

    @property
    def state_shape(self) -> Any:
        """The shapes of h and c without the batch."""
        return (self.proj_size or self.hidden_size,), (self.hidden_size,)


class GRUCell(Gated):
    """r, z = sigmoid(W x + b + U h + d), n = tanh(W x + b + r (U h + d)), h' = z h + (1 - z) n.  (Cho et al. 2014)

    The blocks of rows stand in the order r, z, n.  The output is h'.
    x [B, in], h [B, H] -> [B, H], [B, H]
    """

    gates = 3
    bias_stays = True           # r multiplies it too

    def __init__(self, input_size: int, hidden_size: int, weight_ih_attr: Any = None, weight_hh_attr: Any = None,
                 bias_ih_attr: Any = None, bias_hh_attr: Any = None, name: str | None = None):
        super().__init__(input_size, hidden_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr,
                         bias_hh_attr)

    def step(self, projected: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        h, _ = GruUnit(projected, self.recur(states), states)
        return h, h
