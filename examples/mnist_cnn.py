"""A convolutional network reads handwritten digits: LeNet, trained from nothing to some 98 % in half a minute.

The digits are drawn, not downloaded: each is a few strokes, whose corners are shifted, turned, slanted and scaled at
random before they are drawn as 28 x 28 pixels with noise.  No two images are alike, and those that the network is
tested with it has never seen.

    python examples/mnist_cnn.py [--epochs 2] [--train 6000] [--test 1000] [--seed 0]

(LeCun, Bottou, Bengio, Haffner, Gradient-based learning applied to document recognition, 1998.)
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import minipd as paddle
from minipd import nn
from minipd.io import DataLoader, Dataset

#: Each digit's strokes, as the corners of lines in a box of side 1: x to the right, y down.
STROKES = [
    [[(.5, .1), (.73, .25), (.76, .5), (.73, .75), (.5, .9), (.27, .75), (.24, .5), (.27, .25), (.5, .1)]],
    [[(.35, .28), (.55, .1), (.55, .9)]],
    [[(.22, .3), (.32, .13), (.6, .1), (.77, .28), (.68, .5), (.2, .9), (.8, .9)]],
    [[(.2, .15), (.6, .1), (.75, .28), (.45, .47), (.78, .68), (.6, .9), (.2, .85)]],
    [[(.65, .9), (.65, .1), (.2, .62), (.82, .62)]],
    [[(.75, .1), (.3, .1), (.25, .48), (.6, .42), (.8, .65), (.6, .9), (.2, .85)]],
    [[(.7, .12), (.4, .25), (.22, .6), (.35, .88), (.65, .88), (.78, .65), (.6, .48), (.27, .6)]],
    [[(.2, .1), (.8, .1), (.45, .9)]],
    [[(.5, .1), (.72, .25), (.5, .47), (.28, .25), (.5, .1)], [(.5, .47), (.78, .7), (.5, .9), (.22, .7), (.5, .47)]],
    [[(.73, .4), (.4, .52), (.22, .35), (.35, .12), (.65, .12), (.75, .35), (.6, .9)]],
]
SIZE = 28                                               # pixels


def lines(digit: int) -> np.ndarray:
    """The straight lines that a digit is made of: [n, 2 ends, 2], x and y from the middle of the box."""
    return np.array([ends for stroke in STROKES[digit] for ends in zip(stroke, stroke[1:], strict=False)]) - 0.5


def drawn(digit: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """n images of a digit, no two alike: float32 [n, 28, 28], from 0 (paper) to about 1 (ink)."""
    corners = lines(digit)
    unique, which = np.unique(corners.reshape(-1, 2), axis=0, return_inverse=True)
    moved = unique + rng.normal(0, 0.025, (n, *unique.shape))               # lines that meet stay together
    turn, slant, size = rng.uniform(-0.25, 0.25, n), rng.uniform(-0.25, 0.25, n), rng.uniform(0.75, 1.05, (n, 2, 1))
    turned = np.array([[np.cos(turn), -np.sin(turn) + slant], [np.sin(turn), np.cos(turn)]]).transpose(2, 0, 1)
    moved = moved @ (turned * size).transpose(0, 2, 1) + rng.uniform(-0.08, 0.08, (n, 1, 2))
    start, end = np.moveaxis(moved[:, which].reshape(n, len(corners), 2, 1, 2), 2, 0)
    middles = (np.arange(SIZE) + 0.5) / SIZE - 0.5
    pixels = np.stack(np.meshgrid(middles, middles), -1).reshape(-1, 2)     # [pixels, x and y]
    # the point of a line that is nearest to a pixel divides the line in the ratio t : 1 - t
    along = end - start
    t = ((pixels - start) * along).sum(-1) / np.maximum((along ** 2).sum(-1), 1e-9)
    away = np.linalg.norm(start + np.clip(t, 0, 1)[..., None] * along - pixels, axis=-1).min(1)
    ink = np.clip((rng.uniform(0.03, 0.055, (n, 1)) - away) * SIZE + 0.5, 0, 1)
    return (ink + rng.normal(0, 0.1, ink.shape)).reshape(n, SIZE, SIZE).astype(np.float32)


class Digits(Dataset):
    """n drawn digits in random order: (image float32 [1, 28, 28], which digit it is int64)."""

    def __init__(self, n: int, seed: int):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 10, n)
        self.images = np.empty((n, 1, SIZE, SIZE), np.float32)
        for digit in range(10):
            where = np.flatnonzero(self.labels == digit)
            for some in np.array_split(where, len(where) // 100 + 1):
                self.images[some, 0] = drawn(digit, len(some), rng)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.int64]:
        return self.images[index], self.labels[index]

    def __len__(self) -> int:
        return len(self.labels)


class LeNet(nn.Layer):
    """Images [N, 1, 28, 28] -> scores [N, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2D(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2D(2),      # [N, 6, 14, 14]
            nn.Conv2D(6, 16, 5), nn.ReLU(), nn.MaxPool2D(2))                # [N, 16, 5, 5]
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))

    def forward(self, images: paddle.Tensor) -> paddle.Tensor:
        return self.classifier(self.features(images))


def train(model: LeNet, loader: DataLoader, optimizer: paddle.optimizer.Optimizer) -> float:
    """One pass over the data.  Returns the mean loss."""
    loss_of = nn.CrossEntropyLoss()
    model.train()
    losses = []
    for images, labels in loader:
        loss = loss_of(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def accuracy(model: LeNet, loader: DataLoader) -> float:
    """The share of images that the model reads right."""
    model.eval()
    right = total = 0
    with paddle.no_grad():
        for images, labels in loader:
            right += int((model(images).argmax(axis=1) == labels).sum())
            total += len(labels)
    return right / total


def main(argv: list[str] | None = None) -> float:
    """Draw, train, test.  Returns the accuracy on images that the network has not seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--train", type=int, default=6000, help="images to learn from")
    parser.add_argument("--test", type=int, default=1000, help="images to be tested with")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    paddle.seed(args.seed)
    began = time.perf_counter()
    learning = DataLoader(Digits(args.train, seed=args.seed), batch_size=64, shuffle=True)
    testing = DataLoader(Digits(args.test, seed=args.seed + 1), batch_size=256)
    print(f"drew {args.train + args.test} digits in {time.perf_counter() - began:.1f} s")
    model = LeNet()
    optimizer = paddle.optimizer.Adam(learning_rate=2e-3, parameters=model.parameters())
    found = 0.0
    for epoch in range(1, args.epochs + 1):
        loss = train(model, learning, optimizer)
        found = accuracy(model, testing)
        print(f"epoch {epoch}: loss {loss:.3f}, test accuracy {found:.1%}, {time.perf_counter() - began:.1f} s")
    return found


if __name__ == "__main__":
    main()
