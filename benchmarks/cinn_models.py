"""Inference of whole models with generated kernels and without: `to_static(backend="CINN")` beside `to_static`.

    python benchmarks/cinn_models.py
    python benchmarks/cinn_models.py --threads 1 --only UNet

Llama reads a prompt of 512 tokens (models A and B of `train_cases.py`); the block of a UNet is that of Stable Diffusion
(Rombach et al. 2022), 320 channels wide: a residual block with the embedding of the time step, then a transformer block
with self-attention, attention to the text, and a gated feed-forward.  Figures: README.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from harness import KEEP_MEMORY, Contender, beside, compare, markdown

COMPILED, LIBRARY = "generated kernels", "library kernels"
#: how many times as long library kernels must take
GOALS = {"Llama A, prefill 512": 1.36, "Llama B, prefill 512": 1.36, "UNet block, 320 channels, 32x32": 1.30}


def llama(model: str) -> tuple[Any, list[Any]]:
    """The model of `train_cases.py` without its loss, and a prompt."""
    import numpy as np
    from train_cases import config_of

    import minipd as paddle
    from minipd.models.llama import LlamaForCausalLM
    config = replace(config_of(model).model, max_seq=512)
    ids = np.random.default_rng(0).integers(0, config.vocab_size, (1, 512))
    return LlamaForCausalLM(config), [paddle.to_tensor(ids)]


def unet_block(channels: int, side: int, heads: int = 8, text: int = 77) -> tuple[Any, list[Any]]:
    import minipd as paddle
    from minipd import nn
    from minipd.nn import functional as F

    class Attention(nn.Layer):
        def __init__(self, context):
            super().__init__()
            self.q = nn.Linear(channels, channels, bias_attr=False)
            self.k, self.v = (nn.Linear(context, channels, bias_attr=False) for _ in range(2))
            self.out = nn.Linear(channels, channels)

        def forward(self, x, context):
            q, k, v = (f(t).reshape([t.shape[0], t.shape[1], heads, channels // heads]).transpose([0, 2, 1, 3])
                       for f, t in ((self.q, x), (self.k, context), (self.v, context)))
            weights = F.softmax(paddle.matmul(q, k, transpose_y=True) * (channels // heads) ** -0.5, -1)
            y = paddle.matmul(weights, v).transpose([0, 2, 1, 3]).reshape(x.shape)
            return self.out(y)

    class Block(nn.Layer):
        def __init__(self):
            super().__init__()
            self.norm_in, self.norm_out = nn.GroupNorm(32, channels), nn.GroupNorm(32, channels)
            self.conv_in, self.conv_out = (nn.Conv2D(channels, channels, 3, padding=1) for _ in range(2))
            self.time = nn.Linear(4 * channels, channels)
            self.norm = nn.GroupNorm(32, channels)
            self.norms = nn.LayerList([nn.LayerNorm(channels) for _ in range(3)])
            self.to_itself, self.to_text = Attention(channels), Attention(768)
            self.up, self.down = nn.Linear(channels, 8 * channels), nn.Linear(4 * channels, channels)

        def forward(self, x, time, words):
            h = self.conv_in(F.silu(self.norm_in(x)))
            h = h + self.time(F.silu(time)).unsqueeze(-1).unsqueeze(-1)
            x = x + self.conv_out(F.silu(self.norm_out(h)))
            h = self.norm(x).flatten(2).transpose([0, 2, 1])
            y = self.norms[0](h)
            h = h + self.to_itself(y, y)
            h = h + self.to_text(self.norms[1](h), words)
            value, gate = self.up(self.norms[2](h)).chunk(2, -1)
            h = h + self.down(value * F.gelu(gate))
            return x + h.transpose([0, 2, 1]).reshape(x.shape)

    inputs = [paddle.randn([1, channels, side, side]), paddle.randn([1, 4 * channels]), paddle.randn([1, text, 768])]
    return Block(), inputs


MODELS: dict[str, Callable[[], tuple[Any, list[Any]]]] = {
    "Llama A, prefill 512": partial(llama, "A"), "Llama B, prefill 512": partial(llama, "B"),
    "UNet block, 320 channels, 32x32": partial(unet_block, 320, 32)}


def cases(contender: str) -> dict[str, Callable[[], None]]:
    """contender: `COMPILED` or `LIBRARY`."""
    from cinn_cases import Case

    import minipd as paddle

    def ready(make: Callable[[], tuple[Any, list[Any]]]) -> Callable[[], object]:
        model, inputs = make()
        model.eval()
        run = paddle.jit.to_static(model, backend="CINN" if contender == COMPILED else None)

        def call() -> None:
            with paddle.no_grad():
                run(*inputs)
        return call
    return {name: Case(partial(ready, make)) for name, make in MODELS.items()}


def main() -> None:
    options = argparse.ArgumentParser(description="inference with generated kernels and without")
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--rounds", type=int, default=11)
    options.add_argument("--only", default="", help="a part of the names of the models to run")
    given = options.parse_args()
    contenders = [Contender(label, Path(__file__), label, threads=given.threads, environment=KEEP_MEMORY)
                  for label in (COMPILED, LIBRARY)]
    found = compare(contenders, given.rounds, seconds=0.1, wanted=given.only)
    print(beside(found, [COMPILED, LIBRARY]) + "\n")
    lines = [[name, f"{GOALS[name]:.2f}", f"{by[LIBRARY] / by[COMPILED]:.2f}"] for name, by in found.items()]
    print(markdown(["model", "goal: times", "measured"], lines))


if __name__ == "__main__":
    main()
