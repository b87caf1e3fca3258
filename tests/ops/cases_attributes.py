"""Cases of what is asked of shapes alone."""

import numpy as np

from tests.ops.case import Case, cases

SHAPES = [(), (3,), (2, 0, 5), (1, 4)]


@cases("shape64")
def _(d):
    for shape in SHAPES:
        yield Case((d.floats(*shape),), lambda x: np.array(list(x.shape), int), wrt=())


@cases("numel")
def _(d):
    for shape in SHAPES:
        yield Case((d.floats(*shape),), lambda x: np.array(len(list(x.flat))), wrt=())
