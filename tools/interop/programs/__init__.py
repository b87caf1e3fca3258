"""Static programs whose text is compared.  `paddle` is the real one or minipd; neither is imported here.

Run by a Python with the real Paddle, `python -m tools.interop.programs FILE` writes all its texts, and the gradients
that it computes.
"""

from tools.interop.programs import arrays, flow, layers
from tools.interop.programs.building import build
from tools.interop.programs.registry import PROGRAMS

__all__ = ["PROGRAMS", "arrays", "build", "flow", "layers"]
