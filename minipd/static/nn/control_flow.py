"""The names of `paddle.static.nn.control_flow`."""

from minipd.static.choices import case, switch_case
from minipd.static.control_flow import cond
from minipd.static.effects import Assert, Print
from minipd.static.loops import while_loop

__all__ = ["Assert", "Print", "case", "cond", "switch_case", "while_loop"]
