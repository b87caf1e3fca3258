"""What the real Paddle's passes leave of models that minipd has saved.  Runs where Paddle is installed, without minipd:

    python passes_peer.py FOLDER PASS [PASS ...]

FOLDER holds the files of models; printed are, as JSON, pass -> file -> operations that compute, before and after.  What
depends on parameters alone is not counted: constant folding removes it, which Paddle does not let Python run alone.
"""

import json
import sys
from pathlib import Path

import paddle
from paddle.base import libpaddle

#: operations that compute nothing: inputs, parameters, constants of attributes, bundles, results
QUIET = {"pd_op.data", "pd_op.feed", "builtin.parameter", "pd_op.full", "pd_op.full_int_array", "builtin.combine",
         "builtin.split", "builtin.slice", "builtin.shadow_output", "pd_op.fetch", "pd_op.shadow_feed",
         "builtin.set_parameter", "builtin.constant"}


def size(program):
    """How many operations compute something that depends on an input."""
    depends, number = set(), 0
    for op in program.global_block().ops:
        inside = [o for block in op.blocks() for o in block.ops]
        read = [v.id for o in (op, *inside) for v in o.operands_source() if v.initialized()]
        if op.name() in ("pd_op.data", "pd_op.feed") or any(v in depends for v in read):
            depends.update(v.id for v in op.results() if v.initialized())
            number += op.name() not in QUIET
    return number


def counted(prefix, name):
    """[before, after] of one pass on one model."""
    executor = paddle.static.Executor(paddle.CPUPlace())
    with paddle.static.scope_guard(paddle.static.Scope()):
        program = paddle.static.load_inference_model(prefix, executor)[0]
        before = size(program)
        manager = libpaddle.pir.PassManager()
        manager.add_pass(name, {"__param_scope__": paddle.static.global_scope()})
        manager.run(program)
        return [before, size(program)]


if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    paddle.enable_static()
    found = {}
    for name in names:
        found[name] = {}
        for path in sorted(Path(folder).glob("*.json")):
            try:
                found[name][path.stem] = counted(str(path.with_suffix("")), name)
            except Exception as error:      # a pass that Paddle does not run here is a gap in the table
                found[name][path.stem] = f"{type(error).__name__}: {str(error).splitlines()[-1][:200]}"
    print("\nRESULT", json.dumps(found))
