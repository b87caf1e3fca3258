"""From fusion groups to the loop IR: `axes` (which dimensions are one loop), `kinds` (rows and columns), `loops`
(merged axes and parameters), `lower` (the statements)."""

from minipd.cinn import compute  # noqa: F401  (the column that lowering reads)
from minipd.cinn.lower.errors import CannotLower
from minipd.cinn.lower.lower import kind_of, lower, lower_group

__all__ = ["CannotLower", "kind_of", "lower", "lower_group"]
