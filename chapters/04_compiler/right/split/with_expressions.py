# Writes the position as an expression, from inside out.

from minipd.cinn.ir.ast import For, Var
from minipd.cinn.ir.build import binary
from minipd.cinn.schedule.affine import poly
from minipd.cinn.schedule.nests import with_values
from minipd.cinn.schedule.primitives.loops import _where


def _split(nests, old, extents, even, heads=None):
    names = [nests.unused(f"{old.var}_{k}") for k in range(len(extents))]
    position = Var(names[0])
    for name, extent in zip(names[1:], extents[1:], strict=True):
        position = binary("add", binary("mul", position, extent), Var(name))
    known = nests.extents | {n: poly(e, {}, {}) for n, e in zip(names, extents, strict=True)}
    body = with_values(old.body, {old.var: position}, known)
    if not even:
        body = _where(body, binary("lt", position, old.extent))
    for k in range(len(names) - 1, -1, -1):
        body = For(names[k], extents[k], body, annotations=() if k else old.annotations)
    return nests.edited({id(old): [body]}, heads), names
