"""From a scheduled function to one of which code is made: `finalize`, by passes that keep what the function means."""

from minipd.cinn.optim.finalize import PASSES, finalize, steps

__all__ = ["PASSES", "finalize", "steps"]
