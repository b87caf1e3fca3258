"""A communication that has been started and need not be over: what `Communicator.start` returns."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

__all__ = ["Request"]


class Request:
    """A collective or message on its way.

    What was given to it must not change before it is done (but for a `send`, which has taken a copy).
    """

    def __init__(self) -> None:
        self._over: Callable[[Any, float], None] | None = None      # told of the result and the seconds, once
        self._seconds = 0.0

    def wait(self) -> Any:
        """What the method of the communicator would have returned, as soon as it is there; the same each time.

        Raises: what the method would have raised.
        """
        start = time.perf_counter()
        result = self._finish()
        self._seconds += time.perf_counter() - start
        self._tell(result)
        return result

    def done(self) -> bool:
        """Whether `wait` would return at once.  Never waits; asking helps the communication along.

        Raises: as `wait`.
        """
        return self._poll()

    # ---- for the backends

    def _finish(self) -> Any:
        raise NotImplementedError

    def _poll(self) -> bool:
        raise NotImplementedError

    # ---- for the communicator

    def _when_over(self, over: Callable[[Any, float], None], since: float) -> Request:
        self._over, self._seconds = over, time.perf_counter() - since
        return self

    def _tell(self, result: Any) -> None:
        if self._over is not None:
            over, self._over = self._over, None
            over(result, self._seconds)


class Finished(Request):
    """One whose result was there at once."""

    def __init__(self, result: Any):
        super().__init__()
        self._result = result

    def _finish(self) -> Any:
        return self._result

    def _poll(self) -> bool:
        return True
