"""What every rank refuses in the same words."""

import pytest

from tests.dist.ranks import on_mesh

__all__ = ["refused"]


def refused(function, ranks="x=2"):
    """The error of `function(mesh)`, the same on each rank."""
    def run(mesh):
        with pytest.raises((ValueError, TypeError, NotImplementedError, RuntimeError)) as error:
            function(mesh)
        return f"{type(error.value).__name__}: {error.value}"
    texts = on_mesh(ranks, run)
    assert len(set(texts)) == 1
    return texts[0]
