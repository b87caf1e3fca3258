"""Ask the real Paddle for the cases of `cases`: an environment with paddlepaddle 3.3.1 and numpy runs

    python -m tests.decomposition.record tests/golden/decomposition.jsonl.xz

A line for each case, in float32: its outputs, and for each float input the gradient of the sum of outputs times
weights.
"""

from __future__ import annotations

import json
import lzma
import sys
from typing import Any

import numpy as np

from tests.decomposition.cases import CASES, Case


def weights(i: int, shape: tuple[int, ...]) -> np.ndarray:
    """What output i is multiplied with: numbers that differ, and are exact in float32."""
    return (np.arange(1, int(np.prod(shape)) + 1).reshape(shape) % 7 - 2.5 + i) / 4


def answer(paddle: Any, case: Case, dtype: str) -> dict[str, Any]:
    """The outputs, and the gradients by the number of the input, as nested lists."""
    tensors = []
    for x in case.inputs:
        floating = x.dtype.kind == "f"
        t = paddle.to_tensor(x.astype(dtype) if floating else x)
        t.stop_gradient = not floating
        tensors.append(t)
    if case.call.__name__ == "_batch_norm":
        tensors[1].stop_gradient = tensors[2].stop_gradient = True
    out = case.call(paddle, *tensors)
    outs = list(out) if isinstance(out, (list, tuple)) else [out]
    total = None
    for i, o in enumerate(outs):
        if not o.stop_gradient:
            term = (o * paddle.to_tensor(weights(i, tuple(o.shape)).astype(dtype))).sum()
            total = term if total is None else total + term
    if total is not None:
        total.backward()
    grads = {str(i): t.grad.numpy().tolist() for i, t in enumerate(tensors)
             if not t.stop_gradient and t.grad is not None}
    return {"outputs": [o.numpy().tolist() for o in outs], "dtypes": [str(o.numpy().dtype) for o in outs],
            "gradients": grads}


def main(path: str) -> None:
    import paddle
    lines = []
    for name, case in CASES.items():
        lines.append(json.dumps({"name": name, **answer(paddle, case, "float32")}))
    with lzma.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")
    print(len(lines), "answers")


if __name__ == "__main__":
    main(sys.argv[1])
