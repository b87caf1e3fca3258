"""The texts of both, compared: `python -m tools.interop.text`.

For every program of `programs`: whether minipd prints it as Paddle does; whether what Paddle prints, its backward
program too, reads and prints again the same; and whether the gradients of Paddle's backward program, read as calls of
our rules and run here, are those that Paddle computes.
"""

from __future__ import annotations

import difflib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import minipd
from minipd.executor.executor import Executor
from minipd.ir.builder import Builder
from minipd.ir.paddle.load import Loader
from minipd.ir.parser import parse
from minipd.ir.program import Program
from tools.interop.programs import PROGRAMS, build

#: programs that minipd writes with other operators, and why
OTHERWISE = {
    "cross_entropy": "labels that are ignored never count here",
    "cross_entropy_of_flat_labels": "labels that are ignored never count here",
    "powers": "pow(x, 2) and x ** 2 are one row",
    "powers_of_numbers": "pow(x, 2) and x ** 2 are one row",
    "variance": "the number of elements is known while tracing",
    "deviations": "the number of elements is known while tracing",
    "batch_norm": "the running statistics are buffers with names of their own",
    "batch_norm_in_evaluation": "the running statistics are buffers with names of their own",
    "indexed_by_a_tensor": "an index along one axis is a gather",
    "written_number": "a write is a function, nothing is written in place",
    "written_tensor": "a write is a function, nothing is written in place",
    "open_sizes": "sizes are known by name",
    "eyes": "the number of elements of a tensor has no gradient",
    "dropped_in_evaluation": "a dropout that drops nothing is nothing",
    "mixed_precision": "a bias is added in the low precision",
    "initializers": "truncated normal numbers are those of a uniform draw",
    "initializer_of_numbers": "an array stays outside of the program",
    "initializers_of_structure": "an array stays outside of the program",
    "embedding_with_padding": "the row that counts as zeros is written by a function, not in place",
    "margins": "a margin is a bias",
    "cosines": "a cosine is reckoned from norms, which do not overflow",
    "same_convolution": "padding by name is reckoned while tracing",
    "transposed_convolution": "a bias is laid out without its size",
    "convolution_of_a_line": "a bias is added after the dimension is gone again",
    "pools_of_a_line": "a maximum comes with its place",
    "multi_head_attention": "attention is one function for all layers",
    "encoder_layer": "attention is one function for all layers",
    "scaled_attention": "the causal mask is a comparison of positions",
    **dict.fromkeys(("lstm_cell", "gru_cell", "simple_cell", "lstm", "gru"), "a step of a recurrence is one row"),
}


def main(peer: str, only: list[str]) -> int:
    """The number of programs of which something differs that should not."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "texts.json")
        subprocess.run([peer, "-m", "tools.interop.programs", str(path)], check=True, capture_output=True,
                       cwd=Path(__file__).parents[2])
        theirs = json.loads(path.read_text())
    return compare(theirs, only)


def compare(theirs: dict[str, Any], only: list[str]) -> int:
    minipd.enable_static()
    failures = 0
    print("| program | text equal | startup equal | reads and prints | gradients |\n| --- | --- | --- | --- | --- |")
    details = []
    for name in only or PROGRAMS:
        given = theirs[name]
        cells = []
        main, startup, _ = build(minipd, PROGRAMS[name])
        for want, got in ((given["main"], str(main)), (given["startup"], str(startup))):
            want, got = plain(want), plain(got)
            cells.append("yes" if want.strip() == got.strip() else "otherwise" if name in OTHERWISE else "NO")
            if cells[-1] == "NO":
                details += [f"\n{name}:", *list(difflib.unified_diff(want.splitlines(), got.splitlines(), "paddle",
                                                                     "minipd", lineterm="", n=0))[2:14]]
        if name in OTHERWISE and "otherwise" not in cells:
            cells[0] = "yes, for all that is said of it"
        texts = [given["main"], given["startup"], *([given["backward"]["text"]] if "backward" in given else [])]
        cells.append("yes" if all(parse(t.strip() + "\n", "paddle").to_string("paddle").strip() == t.strip()
                                  for t in texts) else "NO")
        cells.append(gradients(given["backward"]) if "backward" in given else "-")
        failures += any(c not in ("yes", "otherwise", "-") and not _same(c) for c in cells)
        print(f"| {name} | {' | '.join(cells)} |")
    print("".join(f"\n{name} is written otherwise: {why}" for name, why in OTHERWISE.items() if not only))
    print("\n".join(details))
    minipd.disable_static()
    return failures


def plain(text: str) -> str:
    """Without the numbers of layers in names: the two count what they have made before."""
    text = re.sub(r'"(\w+?)_\d+\.(\w+?)_\d+"', r'"\1.\2"', text)
    return re.sub(r'struct_name:"/([A-Za-z0-9]+)_\d+/', r'struct_name:"/\1/', text)


def _same(cell: str) -> bool:
    try:
        return float(cell) <= 1e-5
    except ValueError:
        return False


def gradients(given: dict[str, Any]) -> str:
    """The largest relative difference of the gradients that Paddle's program computes here and there."""
    program = parse(given["text"].strip() + "\n", "paddle")
    loader = Loader(program)
    with loader.program.constraints.collect():
        loader.blocks(program.global_block(), loader.program.global_block())
    ops = program.global_block().ops
    outputs = [loader.values.get(ops[i].result(j)) for i, j in map(tuple, given["places"])]
    strange = sorted({op.name() for op in loader.program.walk() if not op.info.registered})
    if strange:
        return f"not read: {', '.join(strange)}"
    try:
        got = run(loader.program, outputs, given)
    except Exception as error:          # one program that fails is one row of the table
        return f"{type(error).__name__}: {str(error)[:100]}"
    worst, expected = 0.0, [np.asarray(v) for v in given["values"]]
    # what is nothing but rounding beside the others (the bias of a softmax's scores) has no digits to compare
    largest = max(float(np.abs(b).max(initial=0.0)) for b in expected)
    for a, b in zip(got, expected, strict=True):
        if a.shape != b.shape:
            return f"shape {a.shape} against {b.shape}"
        worst = max(worst, float(np.max(np.abs(a - b), initial=0.0)) / (np.abs(b).max(initial=0.0) + 1e-2 * largest))
    return f"{worst:.0e}"


def run(program: Program, outputs: list, given: dict[str, Any]) -> list[np.ndarray]:
    build = Builder(program.global_block())
    for i, value in enumerate(outputs):
        build.output(f"out{i}", value)
    inputs = {op.attributes["name"].value: op.result(0) for op in program.global_block() if op.name() == "pd_op.data"}
    feed = {name: np.asarray(given["feeds"][name], value.dtype) for name, value in inputs.items()}
    scope = {name: np.asarray(given["parameters"][name], value.dtype) for name, value in program.parameters().items()}
    found = Executor(program).run(feed, scope)
    return [found[f"out{i}"] for i in range(len(outputs))]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
