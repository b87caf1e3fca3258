"""What passes gain on models, what they cost to write, and how fast they are found.

    python benchmarks/passes.py                         all but the comparison with Paddle, in under four minutes
    python benchmarks/passes.py --paddle PYTHON         and how many operations the real Paddle's passes leave
    python benchmarks/passes.py --only models --case BERT --rounds 25 --threads 2

models    31 models (`passes_cases.py`), each saved and asked by `paddle.inference`, with its pipeline of passes and
          without a pass, by the same executor: operations that run, bytes that they read and write, time in turns.
          Where the pipeline gains less than a tenth, what the time goes into.
code      lines of code of passes in both forms (`passes_code.py`).
matcher   time against the size of programs, with 50 rules (`passes_matcher.py`).
counts    operations before and after single passes, of the same files in minipd and in Paddle (`passes_peer.py`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import warnings
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from harness import Contender, compare, markdown

HERE = Path(__file__).parent
WITH, WITHOUT, WHOLE = "passes", "none", "cinn"
MARK = 1.10
#: passes that Paddle runs on a CPU, and whose effect can be counted: its names
COMMON = ("common_subexpression_elimination_pass", "dead_code_elimination_pass", "identity_op_clean_pass",
          "remove_redundant_transpose_pass", "matmul_transpose_fuse_pass", "matmul_scale_fuse_pass",
          "scale_matmul_fuse_pass", "silu_fuse_pass", "add_norm_fuse_pass", "embedding_eltwise_layernorm_fuse_pass",
          "horizontal_fuse_pass", "conv2d_bn_fuse_pass", "conv2d_add_act_fuse_pass", "fused_gemm_epilogue_pass",
          "fused_rotary_position_embedding_pass", "fused_flash_attn_pass", "fused_dot_product_attention_pass")


# ------------------------------------------------------------------------------------------------------------- models
def models(rounds: int, seconds: float, threads: int, wanted: str, whole: bool) -> None:
    from passes_cases import MODELS
    cases = HERE / "passes_cases.py"
    ways = [WITHOUT, WITH, *([WHOLE] if whole else [])]
    found = compare([Contender(way, cases, way, threads=threads) for way in ways], rounds, seconds, wanted)
    lines, gains, losers = [], {}, []
    for name in MODELS:
        if name not in found:
            continue
        facts = {way: facts_of(name, way) for way in (WITHOUT, WITH)}
        gain = gains[name] = found[name][WITHOUT] / found[name][WITH]
        error = max(difference(*pair) for pair in zip(facts[WITHOUT]["results"], facts[WITH]["results"], strict=True))
        lines.append([
            name, *(f"{facts[way][key]}" for key in ("operations", "megabytes") for way in (WITHOUT, WITH)),
            *(f"{found[name][way] * 1e3:.2f}" for way in ways), f"{gain:.2f}",
            *([f"{found[name][WITHOUT] / found[name][WHOLE]:.2f}"] if whole else []), f"{error:.0e}"])
        if gain <= MARK:
            losers.append([name, f"{gain:.2f}", where_time_goes(name)])
    heads = ["model", "operations", "with passes", "MB moved", "with passes", "ms", "with passes",
             *(["compiled, ms"] if whole else []), "gain", *(["compiled, gain"] if whole else []), "largest difference"]
    print(markdown(heads, lines))
    above = sum(g > MARK for g in gains.values())
    print(f"\n{above} of {len(gains)} models ({above / len(gains):.0%}) gain more than 10 %; the median gains "
          f"{statistics.median(gains.values()) - 1:.0%}.")
    if losers:
        print("\nThe others, and what their time goes into, with the passes:\n")
        print(markdown(["model", "gain", "time"], losers))


def facts_of(name: str, way: str) -> dict[str, Any]:
    """Of a model behind its passes: operations that run, megabytes that they move, and its results."""
    from passes_cases import predictor_of

    from minipd.cinn.frontend.traffic import bytes_moved
    predictor = predictor_of(name, way)
    predictor.run()
    return {"operations": running(predictor.program), "megabytes": f"{bytes_moved(predictor.program) / 1e6:.1f}",
            "results": [predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names()]}


def running(program: Any) -> int:
    """How many operations a run calls: kernels, library's or generated; views, which only rename memory, are none."""
    from minipd.ir.schema import is_attribute_only
    return sum(op.name() == "cinn_runtime.jit_kernel" or op.row is not None and not op.row.view
               and not is_attribute_only(op) and op.name() != "pd_op.data" for op in program.walk())


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference, in parts of the largest number."""
    return float(np.abs(a.astype(np.float64) - b).max() / max(np.abs(a).max(), 1e-30))


def where_time_goes(name: str) -> str:
    """The operators that take most of a run, and their share."""
    from passes_cases import predictor_of

    from minipd.profiler import Profiler, ProfilerTarget
    predictor = predictor_of(name, WITH)
    predictor.run()
    profiler = Profiler(targets=[ProfilerTarget.CPU], on_trace_ready=lambda prof: None)      # no files
    profiler.start()
    for _ in range(10):
        predictor.run()
    profiler.stop()
    taken: Counter[str] = Counter()
    for span in profiler.spans:
        taken[span.name] += span.seconds
    whole = sum(taken.values())
    return ", ".join(f"{operator} {share / whole:.0%}" for operator, share in taken.most_common(4)
                     if share > 0.03 * whole)


# ------------------------------------------------------------------------------------------------------------- counts
def counts(python: str) -> None:
    from passes_cases import MODELS, saved
    names = {f"{zlib.crc32(name.encode()):08x}": name for name in MODELS}
    with tempfile.TemporaryDirectory() as folder:
        for name in MODELS:
            saved(name, folder)
        theirs = paddles(python, folder)
        ours = {name: {stem: counted(f"{folder}/{stem}", name) for stem in names} for name in COMMON}
    lines = []
    for name in COMMON:
        stems = [stem for stem in names if isinstance(theirs[name].get(stem), list)]
        both = [(ours[name][s], theirs[name][s]) for s in stems]
        gone = [(a[0] - a[1], b[0] - b[1]) for a, b in both]
        lines.append([name, *(str(sum(pair[side][i] for pair in both)) for side in (0, 1) for i in (0, 1)),
                      *(str(sum(pair[side] != 0 for pair in gone)) for side in (0, 1)),
                      str(sum(x >= y for x, y in gone)), str(len(both))])
    print(markdown(["pass", "minipd", "after", "Paddle", "after", "minipd fires on", "Paddle fires on",
                    "no more left than by Paddle", "models"], lines))


def paddles(python: str, folder: str) -> dict[str, dict[str, Any]]:
    done = subprocess.run([python, str(HERE / "passes_peer.py"), folder, *COMMON], capture_output=True, text=True)
    if "RESULT" not in done.stdout:
        raise SystemExit(f"{python} {HERE / 'passes_peer.py'} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.rpartition("RESULT")[2])


def counted(prefix: str, name: str) -> tuple[int, int]:
    """Operations that depend on an input, before and after a pass."""
    from minipd.executor import Scope
    from minipd.passes.manager import PassManager
    from minipd.static.saved_model import imported, read_model
    model = read_model(Path(prefix))
    program = imported(model.saved.program)
    for op in program.walk():
        for result in op.results():
            result.stop_gradient = True
    before = depending(program)
    manager = PassManager(opt_level=4)
    manager.add_pass(name, {"__param_scope__": Scope(model.values)})
    manager.run(program)
    return before, depending(program)


def depending(program: Any) -> int:
    """As `passes_peer.size`."""
    quiet = {"pd_op.data", "builtin.combine", "builtin.split", "builtin.shadow_output"}
    depends, number = set[Any](), 0
    for op in program.global_block():
        inside = [o for block in op.blocks() for o in block]
        if op.name() == "pd_op.data" or any(v in depends for o in (op, *inside) for v in o.operands_source()):
            depends.update(op.results())
            number += op.name() not in quiet
    return number


# -------------------------------------------------------------------------------------------------------------- others
def code() -> None:
    import passes_code
    passes_code.main()


def matcher() -> None:
    import passes_matcher
    lines = [[m.kind, str(m.ops), str(m.rewrites), f"{m.seconds:.2f}", f"{m.microseconds:.0f}"]
             for m in passes_matcher.measure()]
    print(markdown(["program", "operations", "rewrites", "seconds", "µs per operation"], lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--paddle", metavar="PYTHON", help="the interpreter of a real Paddle, to count with")
    parser.add_argument("--only", choices=("models", "code", "matcher", "counts"), help="one of the parts")
    parser.add_argument("--case", default="", help="part of the names of the models to run")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=0.06, help="about how long a trial takes")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--whole", action="store_true", help="also compile the programs behind their passes as a whole")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.only in (None, "models"):
        print(f"## Models, {args.threads} thread{'s' if args.threads > 1 else ''}\n", flush=True)
        models(args.rounds, args.seconds, args.threads, args.case, args.whole)
    if args.only in (None, "code"):
        print("\n## Lines of code\n", flush=True)
        code()
    if args.only in (None, "matcher"):
        print("\n## The matcher\n", flush=True)
        matcher()
    if args.paddle and args.only in (None, "counts"):
        print("\n## Operations that single passes leave\n", flush=True)
        counts(args.paddle)


if __name__ == "__main__":
    main()
