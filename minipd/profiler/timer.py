"""How long steps take, and how many samples go through in a second."""

from __future__ import annotations

import time

__all__: list[str] = []


class Timer:
    """Counts steps, their time and their samples since the last time that somebody asked."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """The first step begins now."""
        self.last, self.steps, self.seconds, self.samples = time.perf_counter(), 0, 0.0, 0

    def step(self, num_samples: int | None) -> None:
        """A step ends, and the next one begins."""
        now = time.perf_counter()
        self.steps, self.seconds, self.last = self.steps + 1, self.seconds + now - self.last, now
        self.samples += num_samples or 0

    def info(self, unit: str | None) -> str:
        """The mean since the last call; empty if there was no step."""
        if not self.steps or not self.seconds:
            return ""
        rate = (f"{self.samples / self.seconds:.3f} {unit or 'samples'}/s" if self.samples
                else f"{self.steps / self.seconds:.3f} steps/s")
        text = f" batch_cost: {self.seconds / self.steps:.5f} s ips: {rate}"
        self.steps, self.seconds, self.samples = 0, 0.0, 0
        return text
