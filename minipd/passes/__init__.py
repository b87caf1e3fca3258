"""Passes: programs to better programs that compute the same.

    manager         PassManager: several passes in order, watched
    table           passes by name
    pattern         rewriting by local rules until none fires
    formula, drr    declarative rules: two formulas
    matching        where a formula stands in a program
    library/        the passes, one file each
    fusion          what is fused in a forward program before its gradient is appended

>>> from minipd.framework.meta import Meta
>>> from minipd.framework import dtype as dtypes
>>> from minipd.ir.traced import trace
>>> program = trace(lambda x: x.exp() * x.exp(), Meta((2,), dtypes.float32.np)).program
>>> manager = PassManager()
>>> manager.add_pass("common_subexpression_elimination_pass")
>>> manager.run(program)
1
>>> [op.name() for op in program.global_block()]
['pd_op.data', 'pd_op.exp', 'pd_op.multiply', 'builtin.shadow_output']
"""

from minipd.passes import library
from minipd.passes.fusion import fuse_forward
from minipd.passes.manager import PassManager
from minipd.passes.table import create_pass, pass_names

__all__ = ["PassManager", "create_pass", "fuse_forward", "library", "pass_names"]
