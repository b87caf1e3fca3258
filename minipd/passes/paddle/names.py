"""Paddle's names for passes and rules in `minipd.pir`, which stands on a lower floor; and `paddle.base.libpaddle.pir`,
where Paddle has them too.

    >>> import minipd.base.libpaddle as lp
    >>> from minipd.passes.show import brief, program_of
    >>> program = program_of(lambda x: x.exp() + x.exp(), (2,))
    >>> lp.pir.apply_cse_pass(program)
    >>> print(brief(program))
    a = exp(x)
    b = add(a, a)
    return b
    >>> lp.pir.PassManager is pir.PassManager
    True
"""

from __future__ import annotations

from minipd import pir
from minipd.base import libpaddle
from minipd.ir.program import Program
from minipd.passes.manager import PassManager
from minipd.passes.paddle.drr import DrrPatternContext
from minipd.passes.table import create_pass

__all__ = ["apply_cse_pass"]


def apply_cse_pass(program: Program) -> None:
    """Run `common_subexpression_elimination_pass` on a program."""
    create_pass("common_subexpression_elimination_pass").run(program)


for _name, _thing in {"DrrPatternContext": DrrPatternContext, "PassManager": PassManager,
                      "apply_cse_pass": apply_cse_pass}.items():
    setattr(pir, _name, _thing)
vars(libpaddle)["pir"] = pir
