"""What `executor.py --memory` measures: bytes that a training step holds at most, in minipd's executor and in torch.

A step is forward, backward and AdamW's update.  Parameters, what the optimizer keeps for them and the batch are there
already, and do not count; gradients do.  minipd counts with the executor's allocation hook, and with tracemalloc, which
numpy reports every array to, those that single kernels need for themselves too.  Torch counts with its profiler.
"""

from __future__ import annotations

import importlib
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

#: case -> (shape of the batch, is it of token numbers, classes)
SHAPES = {"MLP": ((128, 256), False, 10), "CNN": ((16, 3, 32, 32), False, 10),
          "encoder layer": ((8, 64, 128), False, 10), "Llama block": ((4, 64), True, 256)}
HOOK, ALL, BOUND = "by the hook", "with what kernels need", "bound"


def net_of(case: str, m: Any) -> tuple[Any, Callable]:
    """The layers of a case, of minipd or torch, which spell these alike; and logits of a batch."""
    nn, minipd = m.nn, hasattr(m, "to_static") or m.__name__ == "minipd"
    d2 = (lambda name: getattr(nn, f"{name}2D")) if minipd else (lambda name: getattr(nn, f"{name}2d"))
    match case:
        case "MLP":
            net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
            return net, net
        case "CNN":
            net = nn.Sequential(
                d2("Conv")(3, 16, 3, padding=1), d2("BatchNorm")(16), nn.ReLU(), d2("MaxPool")(2),
                d2("Conv")(16, 32, 3, padding=1), d2("BatchNorm")(32), nn.ReLU(), d2("MaxPool")(2),
                nn.Flatten(), nn.Linear(32 * 8 * 8, 10))
            return net, net
        case "encoder layer":
            layer = (nn.TransformerEncoderLayer(128, 4, 512, dropout=0.1) if minipd else
                     nn.TransformerEncoderLayer(128, 4, 512, dropout=0.1, batch_first=True))
            head = nn.Linear(128, 10)
            return (nn.LayerList if minipd else nn.ModuleList)([layer, head]), lambda x: head(layer(x)[:, 0])
    net = llama(m) if minipd else torch_llama(m)
    return net, lambda x: net(x)[:, 0]


def llama(m: Any) -> Any:
    from minipd.models.config import ModelConfig
    from minipd.models.llama import LlamaForCausalLM
    return LlamaForCausalLM(ModelConfig(vocab_size=256, dim=128, layers=1, heads=4, kv_heads=4, ffn_dim=384,
                                        max_seq=64))


def torch_llama(torch: Any) -> Any:
    """The same block in torch, with its fused attention."""
    nn, functional = torch.nn, torch.nn.functional

    class Llama(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.head = nn.Embedding(256, 128), nn.Linear(128, 256, bias=False)
            self.norms = nn.ModuleList(nn.RMSNorm(128, 1e-5) for _ in range(3))
            self.q, self.k, self.v, self.o = (nn.Linear(128, 128, bias=False) for _ in range(4))
            self.gate, self.up, self.down = (nn.Linear(*s, bias=False) for s in ((128, 384), (128, 384), (384, 128)))
            angle = torch.outer(torch.arange(64), 10000.0 ** (-torch.arange(0, 32, 2) / 32))
            self.cos, self.sin = angle.cos(), angle.sin()

        def rotate(self, x):
            a, b = x.chunk(2, -1)
            return torch.cat([a * self.cos - b * self.sin, b * self.cos + a * self.sin], -1)

        def forward(self, ids):
            x = self.embed(ids)
            h = self.norms[0](x)
            q, k, v = (w(h).unflatten(-1, (4, 32)).transpose(1, 2) for w in (self.q, self.k, self.v))
            a = functional.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
            x = x + self.o(a.transpose(1, 2).flatten(2))
            h = self.norms[1](x)
            x = x + self.down(functional.silu(self.gate(h)) * self.up(h))
            return self.head(self.norms[2](x))
    return Llama()


def batch_of(case: str) -> tuple[np.ndarray, np.ndarray]:
    r, (shape, tokens, classes) = np.random.default_rng(0), SHAPES[case]
    x = r.integers(0, 256, shape) if tokens else r.standard_normal(shape).astype(np.float32)
    return x, r.integers(0, classes, shape[0])


def cases(framework: str) -> dict[str, Callable[[], float]]:
    """Case -> a function that returns bytes."""
    if framework == "torch":
        return {name: lambda name=name: of_torch(name) for name in SHAPES}
    return {f"{name}, {what}": lambda name=name, what=what: of_minipd(name)[what]
            for name in SHAPES for what in (HOOK, ALL, BOUND)}


def of_minipd(case: str) -> dict[str, float]:
    import minipd as paddle
    from minipd import executor, static
    from minipd.executor.liveness import liveness
    paddle.enable_static()
    main, startup = static.Program(), static.Program()
    x, y = batch_of(case)
    with static.program_guard(main, startup):
        net, logits = net_of(case, paddle)
        given = static.data("x", x.shape, str(x.dtype)), static.data("y", y.shape, "int64")
        loss = paddle.nn.functional.cross_entropy(logits(given[0]), given[1])
        paddle.optimizer.AdamW(1e-3, parameters=net.parameters()).minimize(loss)
    runner, feed = static.Executor(), {"x": x, "y": y}
    runner.run(startup)
    found: list[Any] = []
    plain = executor.Executor.run

    def measured(self, feed=None, scope=None, memory=None, sizes=None):
        memory = executor.Memory()
        found.append((self, memory))
        return plain(self, feed, scope, memory, sizes)
    for _ in range(2):                                  # the first copies the state that it will write over
        runner.run(main, feed=feed, fetch_list=[loss])
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    runner.run(main, feed=feed, fetch_list=[loss])
    beside = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    executor.Executor.run = measured
    runner.run(main, feed=feed, fetch_list=[loss])
    executor.Executor.run = plain
    paddle.disable_static()
    (own, memory), = found
    return {HOOK: memory.peak, ALL: own.plan().size + beside, BOUND: liveness(own.program).peak}


def of_torch(case: str) -> float:
    torch = importlib.import_module("torch")
    from torch.profiler import ProfilerActivity, profile
    torch.set_num_threads(1)
    x, y = map(torch.tensor, batch_of(case))
    net, logits = net_of(case, torch)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)

    def step() -> None:
        torch.nn.functional.cross_entropy(logits(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
    for _ in range(2):
        step()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        step()
    events = [e for e in profiled.profiler.kineto_results.events() if e.name() == "[memory]"]
    return np.cumsum([e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())]).max()
