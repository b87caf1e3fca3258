"""What `eager.py --memory` measures: bytes that a training step of an MLP holds, in torch and in minipd.

Each framework's own account of its tensors: torch's profiler, and tracemalloc, which numpy reports its arrays to.
Parameters, their gradients of the step before and the batch are there already, and do not count.
"""

from __future__ import annotations

import importlib
import tracemalloc
from collections.abc import Callable

import numpy as np

BATCH, SIZES = 512, (256, 1024, 1024, 10)


def cases(framework: str) -> dict[str, Callable[[], float]]:
    """Case -> a function that returns bytes."""
    forward, rest = step_of(framework)
    measure = of_torch if framework == "torch" else of_numpy
    for _ in range(2):
        rest(forward())
    return {"MLP: held between forward and backward": lambda: measure(forward, rest)[0],
            "MLP: held at most in a step": lambda: measure(forward, rest)[1]}


def step_of(framework: str) -> tuple[Callable, Callable]:
    """(forward() -> loss, rest(loss)) of one training step."""
    m = importlib.import_module(framework)
    rng = np.random.default_rng(0)
    data = rng.standard_normal((BATCH, SIZES[0])).astype(np.float32)
    labels = rng.integers(0, SIZES[-1], BATCH)
    layers = []
    for i, o in zip(SIZES, SIZES[1:], strict=False):
        layers += [m.nn.Linear(i, o), m.nn.ReLU()]
    model = m.nn.Sequential(*layers[:-1])
    if framework == "torch":
        m.set_num_threads(1)
        x, y, optimizer = m.tensor(data), m.tensor(labels), m.optim.SGD(model.parameters(), 1e-3)
    else:
        x, y = m.to_tensor(data), m.to_tensor(labels)
        optimizer = m.optimizer.SGD(1e-3, parameters=model.parameters())

    def rest(loss) -> None:
        loss.backward()
        optimizer.step()
        (optimizer.zero_grad if framework == "torch" else optimizer.clear_grad)()
    return lambda: m.nn.functional.cross_entropy(model(x), y), rest


def of_numpy(forward: Callable, rest: Callable) -> tuple[float, float]:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        loss = forward()
        held, _ = tracemalloc.get_traced_memory()
        rest(loss)
        return held - before, tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def of_torch(forward: Callable, rest: Callable) -> tuple[float, float]:
    from torch.profiler import ProfilerActivity, profile

    def most(work: Callable) -> tuple[float, float]:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
            kept = work()
        events = [e for e in profiled.profiler.kineto_results.events() if e.name() == "[memory]"]
        held = np.cumsum([e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())])
        del kept
        return held[-1], held.max()
    return most(forward)[0], most(lambda: rest(forward()))[1]
