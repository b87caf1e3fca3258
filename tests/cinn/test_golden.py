"""What well-known groups become, as text: the trace of their schedule, and the flat form.

`pytest tests/cinn/test_golden.py --update-golden` writes the files in `golden/` anew; read the difference before you
commit it.
"""

from pathlib import Path

import numpy as np
import pytest

import minipd as paddle
from minipd.cinn.ir.printer import text
from minipd.cinn.optim import finalize
from minipd.cinn.schedule import schedule
from minipd.framework.dim import symbol
from minipd.ops.update import AdamW
from tests.cinn.groups import BF16, group
from tests.cinn.test_lower import rms_norm, rms_norm_gradient, softmax

FOLDER = Path(__file__).parent / "golden"
F32 = np.dtype("f4")


def layer_norm(x, w, b):
    centered = x - x.sum(-1, keepdim=True) / x.shape[-1]
    return centered * paddle.rsqrt((centered * centered).sum(-1, keepdim=True) / x.shape[-1] + 1e-5) * w + b


def adamw(p, g, m, v, step, lr, skip):
    return AdamW(p, g, m, v, step, lr, skip)


S = symbol("S0")
GROUPS = {
    "rms_norm": (rms_norm, [((8, 256, 288), F32), ((288,), F32)]),
    "rms_norm_symbolic_bf16": (rms_norm, [((8, S, 288), BF16), ((288,), BF16)]),
    "rms_norm_gradient": (rms_norm_gradient, [((8, 256, 288), F32), ((288,), F32), ((8, 256, 288), F32)]),
    "softmax": (softmax, [((2048, 4096), F32)]),
    "layer_norm": (layer_norm, [((2048, 512), F32), ((512,), F32), ((512,), F32)]),
    "adamw": (adamw, [((4096, 288), F32)] * 4 + [((), np.dtype("i8")), ((), F32), ((), np.dtype(bool))]),
    "total": (lambda x: x.square().sum(), [((4096, 288), F32)]),
}


@pytest.mark.parametrize("name", GROUPS)
def test_golden(name, request):
    fn, specs = GROUPS[name]
    made = schedule(group(fn, *specs).lower())
    found = f"{made.trace}\n\n{text(finalize(made.function))}"
    file = FOLDER / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(found)
    assert found == file.read_text(), f"{file.name} differs; if it should, run with --update-golden"
