"""Making plain loops fast: `loops`, `rows`, `hoist`, `share` hold the primitives, `plan` the order of applying
them, `tree` how to point at a loop."""

from minipd.cinn.schedule.hoist import hoist
from minipd.cinn.schedule.loops import block, chunk, parallelize, vectorize
from minipd.cinn.schedule.plan import Options, Schedule, explain, schedule
from minipd.cinn.schedule.rows import cache_row
from minipd.cinn.schedule.share import merge, share
from minipd.cinn.schedule.tree import ScheduleError

__all__ = ["Options", "Schedule", "ScheduleError", "block", "cache_row", "chunk", "explain", "hoist", "merge",
           "parallelize", "schedule", "share", "vectorize"]
