"""Big operators as compositions of smaller ones: one rule for eager, distributed and compiled.

    table            the column `decompose`, and the decorator that fills it
    activation, fused, lookup, loss, normalizing, optimizer, shapes, small      rules of rows
    functions        rules of Paddle's operators that are functions here
    rules            whether there is a rule, and calling it
    decompose_pass   programs: an operation replaced by its rule
    recompute        what a gradient keeps of the forward part, and what it computes again
    prim, names      Paddle's switches, and its names
"""

from minipd.decomposition import (
    activation,
    decomp,
    functions,
    fused,
    lookup,
    loss,
    names,
    normalizing,
    optimizer,
    prim,
    recompute,
    rules,
    shapes,
    small,
)
from minipd.decomposition.decompose_pass import DecomposePass, decompose
from minipd.decomposition.recompute import auto_recompute

__all__ = ["DecomposePass", "activation", "auto_recompute", "decomp", "decompose", "functions", "fused", "lookup",
           "loss", "names", "normalizing", "optimizer", "prim", "recompute", "rules", "shapes", "small"]
