"""The names of `paddle.static.nn`."""

from minipd.static.choices import case, switch_case
from minipd.static.control_flow import cond
from minipd.static.loops import while_loop
from minipd.static.nn import control_flow
from minipd.static.nn.common import fc
from minipd.static.pylayer import static_pylayer

__all__ = ["case", "cond", "control_flow", "fc", "static_pylayer", "switch_case", "while_loop"]
