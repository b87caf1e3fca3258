"""A pass is right when the program means the same before and after."""

import zlib

import numpy as np

from minipd.executor import Executor, Scope
from minipd.ir.builder import Builder
from minipd.ir.types import TensorType
from minipd.ir.verify import verify


def run(program, seed=0, bound=None):
    """(outputs, state afterwards) of a run on random inputs."""
    def drawn(name, value):
        rng = np.random.default_rng([seed, zlib.crc32(repr(name).encode())])
        numbers = rng.standard_normal(value.shape) * 2
        return np.asarray(numbers if value.dtype.kind != "i" else np.rint(numbers)).astype(value.dtype)

    feed = {name: drawn(name, op.result(0)) for op in program.walk() if op.name() == "pd_op.data"
            for name in [op.attrs()["name"]]}
    scope = Scope({name: drawn(name, value) for name, value in program.parameters().items()})
    with np.errstate(all="ignore"):
        outputs = Executor(program).run({**feed, **(bound or {})}, scope)
    return outputs, dict(scope)


def same(program, change, rtol=0.0):
    """Apply `change` to a copy of the program; check that it is well formed and computes the same (to the bit, or to
    `rtol`).  Returns the changed program and what `change` returned."""
    changed = program.clone()
    result = change(changed)
    verify(changed)
    for before, after in zip(run(program), run(changed), strict=True):
        assert before.keys() >= after.keys()
        for name, array in after.items():
            assert array.dtype == before[name].dtype
            # (numpy does not compare NaNs of bfloat16)
            got, want = (x if x.dtype.kind in "iubc" else x.astype(np.float64) for x in (array, before[name]))
            if rtol:
                np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)
            else:
                np.testing.assert_array_equal(got, want)
    return changed, result


def observed(program, last=4):
    """The program with its last values as outputs."""
    values = [r for op in program.global_block() for r in op.results() if isinstance(r.type(), TensorType)]
    build = Builder(program.global_block())
    for i, value in enumerate(values[-last:]):
        build.output(f"observed_{i}", value)
    return program


def names(program):
    """Names of the operations that are no inputs, outputs and constants of attributes."""
    quiet = ("pd_op.data", "builtin.parameter", "builtin.shadow_output", "pd_op.full_int_array", "pd_op.full",
             "builtin.combine")
    return [op.name().removeprefix("pd_op.") for op in program.walk() if op.name() not in quiet]
