"""From fusion groups to the loop IR in block form: `calls` and `analysis` (what operators say of their dimensions),
`axes` (which of these are one loop), `loops` (merged axes, and arrays as loops see them), `lower` (the blocks)."""

from minipd.cinn import compute  # noqa: F401  (the column that lowering reads)
from minipd.cinn.lower.errors import CannotLower
from minipd.cinn.lower.lower import lower, lower_group

__all__ = ["CannotLower", "lower", "lower_group"]
