"""DataParallel: the same model on every rank, each with its own part of a batch."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from minipd.framework.rank import current
from minipd.framework.tensor import Parameter, Tensor
from minipd.nn.layer import Layer

__all__ = ["DataParallel"]


class DataParallel(Layer):
    """A layer whose gradients are the mean over all ranks.

    All ranks begin with the first one's parameters and buffers, and call the same layers.  When the gradient of a
    parameter is complete, it is averaged over the ranks before it goes to `.grad`; so every rank's optimizer makes the
    same step.  On one rank nothing is communicated.

    Args:
        layers: the model.
        group: the ranks, from `distributed.new_group`; all of them unless given.
        strategy, comm_buffer_size, last_comm_buffer_size, find_unused_parameters: without effect; each gradient is a
            message of its own.

    >>> from minipd.nn import Linear
    >>> model = DataParallel(Linear(2, 1))
    >>> list(model.state_dict())
    ['weight', 'bias']
    """

    def __init__(self, layers: Layer, strategy: Any = None, comm_buffer_size: int = 25,
                 last_comm_buffer_size: float = 1, find_unused_parameters: bool = False, group: Any = None):
        super().__init__()
        self._layers, self.group = layers, group
        self._on = True
        self._apart: set[Parameter] = set()         # those with gradients in .grad that no other rank knows
        if len(self._ranks()) > 1:
            comm = current().join()
            for x in (*layers.parameters(), *layers.buffers()):
                x.set_value(comm.broadcast(x.numpy(), self._ranks()[0], self._ranks()))
            for p in layers.parameters():
                if p.trainable:
                    p.register_hook(functools.partial(self._mean, p))

    def _ranks(self) -> tuple[int, ...]:
        if self.group is not None:
            return tuple(self.group.ranks)
        return tuple(range(current().world_size))

    def _mean(self, p: Parameter, g: Tensor) -> Tensor | None:
        """What to add to p.grad, so that it becomes the mean of the ranks' gradients."""
        if not self._on:
            self._apart.add(p)
            return None
        before = p.grad if p in self._apart else None
        self._apart.discard(p)
        local = (g if before is None else g + before).numpy()
        ranks = self._ranks()
        mean = Tensor(current().comm.all_reduce(local, ranks)) * (1 / len(ranks))
        return mean if before is None else mean - before

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self._layers(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients add up on each rank alone; the next backward outside averages them too."""
        before, self._on = self._on, False
        try:
            yield
        finally:
            self._on = before

    def scale_loss(self, loss: Tensor) -> Tensor:
        """The loss as it is: gradients are averaged, not added."""
        return loss

    def apply_collective_grads(self) -> None:
        """Nothing: gradients are averaged as they come."""

    def init_reducer(self) -> None:
        """Nothing: there are no buffers to set up."""

    # the state is the model's: what one process has saved, a model without DataParallel loads
    def state_dict(self, destination: Any = None, include_sublayers: bool = True, structured_name_prefix: str = "",
                   use_hook: bool = True, keep_vars: bool = True) -> Any:
        return self._layers.state_dict(destination, include_sublayers, structured_name_prefix, use_hook, keep_vars)

    def set_state_dict(self, state_dict: Any, use_structured_name: bool = True) -> Any:
        return self._layers.set_state_dict(state_dict, use_structured_name)

    set_dict = load_dict = set_state_dict
