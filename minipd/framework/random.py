"""Which random numbers an operator draws: the key of each draw, by name instead of by order of execution.

A draw is named by (seed, step, micro-batch, layer path, n-th draw of that path in this step and micro-batch), and its
key is the hash of that name (`philox.key_of`).  What a layer draws therefore depends on nothing that other layers,
other micro-batches or other ranks did before: a pipeline stage that runs alone, a recomputed layer, and a compiled step
all draw what the plain eager run draws.  The initial values of the n-th parameter to be created are named by that n.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from minipd.framework import mersenne
from minipd.framework.philox import key_of
from minipd.framework.rank import current

__all__ = ["Generator", "get_cuda_rng_state", "get_rng_state", "manual_seed", "seed", "set_cuda_rng_state",
           "set_rng_state"]


class Generator:
    """The random state of one rank: a seed, where training stands, and how often each layer has drawn there.

    >>> g = Generator(seed=7)
    >>> with g.scope("decoder"), g.scope("0"):
    ...     g.path, g.next_name(), g.next_name()
    ('decoder.0', ('decoder.0', 0), ('decoder.0', 1))
    >>> g.set_step(1)
    >>> bool((g.next_key() == g.key("", 0)).all())
    True
    """

    def __init__(self, seed: int = 0):
        #: of draws that follow one another: the last one goes on, those before are kept for keys that are out.  Where
        #: there is none, draws go by their names.
        self.streams: list[mersenne.Stream] = []
        self.seed(seed)
        self._path: list[str] = []

    def seed(self, seed: int) -> Generator:
        """Starts anew from `seed` (any int), at step 0, with no draws made and no parameters created."""
        self.initial_seed = int(seed)
        self.step = self.micro = self.created = 0
        self._draws: dict[str, int] = {}
        if self.streams:
            self.draw_as_paddle()
        return self

    def draw_as_paddle(self) -> Generator:
        """From here on, draws follow one another, and give the numbers that Paddle gives on the CPU after this seed.

        What they give depends then on all that were made before (see `framework.mersenne`).
        """
        return self._begin(self.initial_seed)

    def _begin(self, seed: int, position: int = 0) -> Generator:
        # (a state that is returned to, by recomputation say, is of the same seed: its words are there already)
        same = bool(self.streams) and self.streams[-1].seed == seed
        self.streams.append(mersenne.Stream(self.streams[-1].engine if same else mersenne.Engine(seed), position))
        self._drawn = 0
        return self

    def _next_in_stream(self) -> np.ndarray:
        self._drawn += 1
        return mersenne.key_of_draw(len(self.streams) - 1, self._drawn)

    # -- where we are -------------------------------------------------------------------------------------------
    def set_step(self, step: int) -> None:
        """Enters training step `step`, at micro-batch 0: every path counts its draws from 0 again."""
        self.step, self.micro = int(step), 0
        self._draws.clear()

    def set_micro(self, micro: int) -> None:
        """Enters micro-batch `micro` of the step: every path counts its draws from 0 again."""
        self.micro = int(micro)
        self._draws.clear()

    @property
    def path(self) -> str:
        """The layer that is running: its names from the root, joined by dots."""
        return ".".join(self._path)

    def push(self, name: str) -> None:
        """Enters the sublayer `name`.  (`scope` without the cost of a context manager: every layer call does this.)"""
        self._path.append(name)

    def pop(self) -> None:
        """Leaves the sublayer entered last."""
        self._path.pop()

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Draws in this block belong to the sublayer `name` of the current path."""
        self.push(name)
        try:
            yield
        finally:
            self.pop()

    # -- keys -----------------------------------------------------------------------------------------------------
    def next_name(self) -> tuple[str, int]:
        """Counts one more draw of the current path and returns its name, (path, n)."""
        path = ".".join(self._path)
        n = self._draws.get(path, 0)
        self._draws[path] = n + 1
        return path, n

    def key(self, path: str, n: int) -> np.ndarray:
        """The key, int64[2], of draw (path, n) at the current step and micro-batch.  Counts nothing."""
        return key_of(self.initial_seed, "draw", self.step, self.micro, path, n)

    def next_key(self, path: str | None = None) -> np.ndarray:
        """The key of the next draw of the current path, or of `path` (a compiled step runs outside of layers)."""
        if self.streams:
            return self._next_in_stream()
        if path is None:
            return self.key(*self.next_name())
        n = self._draws.get(path, 0)
        self._draws[path] = n + 1
        return self.key(path, n)

    def init_key(self, name: str | int | None = None) -> np.ndarray:
        """The key of a parameter's initial values: of the next one to be created, or of the one called `name`."""
        if name is None:
            if self.streams:
                return self._next_in_stream()
            name, self.created = self.created, self.created + 1
        return key_of(self.initial_seed, "init", name)

    # -- checkpoints and recomputation --------------------------------------------------------------------------
    def get_state(self) -> dict[str, Any]:
        """Everything the next draws depend on, as plain JSON values."""
        state = {
            "seed": self.initial_seed, "step": self.step, "micro": self.micro, "created": self.created,
            "path": list(self._path), "draws": dict(self._draws),
        }  # fmt: skip
        if self.streams:
            state["stream"] = [self.streams[-1].seed, self.streams[-1].end]
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Returns to a state from `get_state`.  ValueError if entries are missing or unknown."""
        if state.keys() != self.get_state().keys():
            raise ValueError(f"random state: expected the entries {sorted(self.get_state())}, got {sorted(state)}")
        self.initial_seed, self.step, self.micro = state["seed"], state["step"], state["micro"]
        self.created, self._path, self._draws = state["created"], list(state["path"]), dict(state["draws"])
        if "stream" in state:
            self._begin(*state["stream"])


def seed(seed: int) -> Generator:
    """Starts this rank's random numbers anew (`paddle.seed`); returns its generator.

    The same seed on every rank gives the same parameters on any mesh: each rank fills its part of the global values.
    """
    return current().rng.seed(seed)


manual_seed = seed


def get_rng_state(device: str | None = None) -> list[dict[str, Any]]:
    """The states of this rank's generators, of which there is one: what the next draws depend on.

    >>> before = get_rng_state()
    >>> first = current().rng.next_key()
    >>> set_rng_state(before)
    >>> bool((current().rng.next_key() == first).all())
    True
    """
    return [current().rng.get_state()]


def set_rng_state(state_list: Sequence[dict[str, Any]], device: str | None = None) -> None:
    """Returns to a state that `get_rng_state` gave: the same draws follow.  ValueError if it is no such state."""
    if len(state_list) != 1:
        raise ValueError(f"set_rng_state: expected the state of one generator, as get_rng_state gives it, got "
                         f"{len(state_list)}")
    current().rng.set_state(state_list[0])


def get_cuda_rng_state() -> list[dict[str, Any]]:
    """The states of the generators of CUDA devices: none, for draws do not depend on the device."""
    return []


def set_cuda_rng_state(state_list: Sequence[dict[str, Any]]) -> None:
    """Accepts what `get_cuda_rng_state` gave: no states.  ValueError for any other."""
    if state_list:
        raise ValueError(f"set_cuda_rng_state: expected no states, for draws do not depend on the device, got "
                         f"{len(state_list)}; see set_rng_state")
