"""What compiling a function gains where operators are small, and what it costs: µs per operator, seconds to capture.

    python benchmarks/to_static.py                                      minipd eagerly, as one program, in segments
    python benchmarks/to_static.py --paddle PYTHON --torch PYTHON       ... beside those, each from its own environment
    python benchmarks/to_static.py --capture                            the first call of a Llama of 32 layers

Figures of the MLP are per operator, the others per call.  Figures: README.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from harness import Contender, compare, table
from to_static_cases import OPS


def main() -> None:
    options = argparse.ArgumentParser(description="compiled functions of small operators")
    options.add_argument("--paddle", metavar="PYTHON", help="an interpreter that has paddlepaddle")
    options.add_argument("--torch", metavar="PYTHON", help="an interpreter that has torch")
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--case", default="", help="only the cases with this in their name")
    options.add_argument("--capture", action="store_true", help="how long the first call of a large model takes")
    given = options.parse_args()
    if given.capture:
        capture()
        return
    file = Path(__file__).with_name("to_static_cases.py")
    ways = [("eager", "minipd:eager", sys.executable), ("to_static", "minipd:to_static", sys.executable),
            ("segments", "minipd:segments", sys.executable)]
    if given.paddle:
        ways += [("paddle", "paddle:eager", given.paddle), ("paddle to_static", "paddle:to_static", given.paddle)]
    if given.torch:
        ways += [("torch", "torch:eager", given.torch)]
    found = compare([Contender(label, file, argument, python, ops=OPS) for label, argument, python in ways],
                    given.rounds, wanted=given.case)
    ratios = [("eager", "to_static"), ("eager", "segments")]
    ratios += [("paddle to_static", "to_static")] if given.paddle else []
    print(table(found, [label for label, _, _ in ways], ratios))


def capture() -> None:
    """Print the seconds of the first and the third call of a 32-layer Llama, forward and backward."""
    import numpy as np

    import minipd as paddle
    from minipd.models.config import ModelConfig
    from minipd.models.llama import LlamaForCausalLM

    model = LlamaForCausalLM(ModelConfig(vocab_size=256, dim=64, layers=32, heads=4, kv_heads=2, ffn_dim=172,
                                         max_seq=32))
    ids = paddle.to_tensor(np.random.default_rng(0).integers(0, 256, (2, 16)))
    for full_graph in (True, False):
        f = paddle.jit.to_static(lambda ids: model(ids).mean(), full_graph=full_graph)
        print("one program" if full_graph else "segments")
        for n in range(3):
            start = time.process_time()
            loss = f(ids)
            middle = time.process_time()
            loss.backward()
            print(f"  call {n}: forward {middle - start:.2f} s, backward {time.process_time() - middle:.2f} s")


if __name__ == "__main__":
    main()
