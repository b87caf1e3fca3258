"""How a function in block form is to run: `ir_schedule` and `primitives` transform it legally, `trace` records that,
`tactics` and `scheduler` choose, by a `config`.  What is legal, primitives see from `nests` (loops and blocks by name),
`dependences` (who touches an element first) and `affine` (when two indices are equal)."""

from minipd.cinn.schedule.config import BaseInfo, BucketInfo, ScheduleConfig, buckets_for, config_for
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.ir_schedule import IRSchedule
from minipd.cinn.schedule.scheduler import Scheduled, arrangement_of, schedule
from minipd.cinn.schedule.trace import Step, Trace

__all__ = ["BaseInfo", "BucketInfo", "IRSchedule", "ScheduleConfig", "ScheduleError", "Scheduled", "Step", "Trace",
           "arrangement_of", "buckets_for", "config_for", "schedule"]
