"""A convolutional network in static mode: written as a program first, then trained, evaluated, saved and loaded.

    python examples/static_training.py [--steps 60] [--seed 0]

The images show a stroke: level, upright, or one of the two slants, in noise.  Nothing is computed while the network is
written: `static.data`, `conv2d`, `minimize` append operators to the main program, and what fills the parameters to the
startup program.  An executor runs both.  The copy that `clone(for_test=True)` makes before `minimize` shares the
parameters, and neither drops nor learns anything; it is what is saved for inference.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

import minipd as paddle
from minipd import static
from minipd.nn import ClipGradByGlobalNorm
from minipd.nn import functional as F

SIZE, KINDS = 12, 4


def strokes(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """n images float32 [n, 1, SIZE, SIZE], and which kind of stroke each shows, int64 [n, 1]."""
    kinds = rng.integers(0, KINDS, n)
    rows, columns = np.mgrid[:SIZE, :SIZE] - (SIZE - 1) / 2
    across = np.stack([rows, columns, (rows - columns) / 2 ** 0.5, (rows + columns) / 2 ** 0.5])[kinds]
    shift = rng.uniform(-3, 3, (n, 1, 1))
    ink = np.abs(across - shift) < 1.0
    images = ink + rng.normal(0.0, 0.4, (n, SIZE, SIZE))
    return images[:, None].astype("float32"), kinds[:, None].astype("int64")


class Network(NamedTuple):
    """The programs, and the tensors of the main program that a run is asked for."""

    main: static.Program
    startup: static.Program
    test: static.Program
    image: paddle.Tensor
    scores: paddle.Tensor
    loss: paddle.Tensor
    accuracy: paddle.Tensor
    schedule: paddle.optimizer.lr.LRScheduler


def build() -> Network:
    """Write the network and its training."""
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        image, label = static.data("image", [None, 1, SIZE, SIZE]), static.data("label", [None, 1], "int64")
        x = static.nn.conv2d(image, num_filters=8, filter_size=3, bias_attr=False)
        x = F.max_pool2d(F.relu(static.nn.batch_norm(x)), kernel_size=2)
        x = F.dropout(x, 0.2)
        scores = static.nn.fc(x, KINDS)
        loss = F.cross_entropy(scores, label)
        accuracy = static.accuracy(F.softmax(scores), label)
        test = main.clone(for_test=True)
        schedule = paddle.optimizer.lr.StepDecay(0.02, step_size=20, gamma=0.5)
        paddle.optimizer.Adam(schedule, weight_decay=paddle.regularizer.L2Decay(1e-4),
                              grad_clip=ClipGradByGlobalNorm(1.0)).minimize(loss)
    return Network(main, startup, test, image, scores, loss, accuracy, schedule)


def main(argv: list[str] | None = None) -> float:
    """Train, evaluate, save and load; returns the accuracy of what was loaded, on images it has never seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)

    paddle.seed(args.seed)
    rng = np.random.default_rng(args.seed)
    paddle.enable_static()
    try:
        net, exe = build(), static.Executor(paddle.CPUPlace())
        exe.run(net.startup)
        images, labels = strokes(500, rng)
        for step in range(1, args.steps + 1):
            x, y = strokes(32, rng)
            loss, = exe.run(net.main, feed={"image": x, "label": y}, fetch_list=[net.loss])
            net.schedule.step()
            if step % 20 == 0:
                right, = exe.run(net.test, feed={"image": images, "label": labels}, fetch_list=[net.accuracy])
                print(f"step {step}: loss {loss:.3f}, accuracy {right:.3f}")
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "strokes")
            static.save_inference_model(path, [net.image], [net.scores], exe, program=net.test)
            with static.scope_guard(static.Scope()):
                program, names, results = static.load_inference_model(path, exe)
                scores, = exe.run(program, feed={names[0]: images}, fetch_list=results)
        return float((scores.argmax(-1) == labels[:, 0]).mean())
    finally:
        paddle.disable_static()


if __name__ == "__main__":
    print(f"what was loaded is right {main():.1%} of the time")
