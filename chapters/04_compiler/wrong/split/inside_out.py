# The loops stand inside out: the first extent is the innermost.
from dataclasses import replace

from minipd.cinn.ir.ast import For, Var
from minipd.cinn.ir.build import binary
from minipd.cinn.schedule.affine import Poly, poly
from minipd.cinn.schedule.nests import with_values
from minipd.cinn.schedule.primitives.loops import _where


def _split(nests, old, extents, even, heads=None):
    names = [nests.unused(f"{old.var}_{k}") for k in range(len(extents))]
    known, position = dict(nests.extents), Poly({})
    for name, extent in zip(names, extents, strict=True):
        known[name] = poly(extent, {}, {})
        position = position * known[name] + Poly.atom(Var(name))
    body = with_values(old.body, {old.var: position.expr}, known)
    if not even:
        body = _where(body, binary("lt", position.expr, old.extent))
    for name, extent in zip(names, extents, strict=True):
        body = For(name, extent, body)
    return nests.edited({id(old): [replace(body, annotations=old.annotations)]}, heads), names
