"""Passes: programs to better programs that compute the same.

    base            what passes are made from: classes, functions, patterns
    manager         PassManager: several passes in order, watched
    table, listing  passes by name; the table as text
    plugins         passes in a file of the user's own
    pattern         rewriting by local rules until none fires
    rewriter        the builder that rules change programs with, and who is told
    formula, drr    declarative rules: two formulas; facts: what their conditions ask
    reading         a source formula as a pattern, of nodes
    matching        where a pattern stands in a program; explain: why it does not
    writing         the result formula as operations
    paddle/         rules as Paddle's Python API writes them
    library/        the passes, one file each
    pipelines       which passes run where
    fusion          what is fused in a forward program before its gradient is appended
    compare, show   whether two programs compute the same; what a pass does, as text
    bisection       which pass, and which rewrite, changes what a program computes

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
from minipd.passes.base import FunctionPass, Pass, PatternRewritePass
from minipd.passes.bisection import Culprit, bisect
from minipd.passes.fusion import fuse_forward
from minipd.passes.manager import PassManager, PassRun
from minipd.passes.pattern import (
    Listener,
    PatternRewriter,
    RewriteError,
    RewritePattern,
    apply_patterns_greedily,
    watching_rewrites,
)
from minipd.passes.plugins import load_passes
from minipd.passes.table import create_pass, function_pass, pass_names, register_pass

__all__ = ["Culprit", "FunctionPass", "Listener", "Pass", "PassManager", "PassRun", "PatternRewritePass",
           "PatternRewriter", "RewriteError", "RewritePattern", "apply_patterns_greedily", "bisect", "create_pass",
           "function_pass", "fuse_forward", "library", "load_passes", "pass_names", "register_pass",
           "watching_rewrites"]
