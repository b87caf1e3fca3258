"""Big operators as compositions of smaller ones: one rule for eager, distributed and compiled.

    table            the column `decompose`, and the decorator that fills it
    activation, fused, lookup, normalizing, optimizer, shapes      the rules
    decompose_pass   programs: an operation replaced by its rule
"""

from minipd.decomposition import activation, fused, lookup, normalizing, optimizer, shapes
from minipd.decomposition.decompose_pass import DecomposePass, decompose

__all__ = ["DecomposePass", "activation", "decompose", "fused", "lookup", "normalizing", "optimizer", "shapes"]
