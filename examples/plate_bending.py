"""A thin plate under load, solved by a neural network that knows its differential equation and nothing else (a PINN).

A square plate of side 1 and stiffness D rests on its four edges.  Under the load q its deflection w obeys Kirchhoff's

    D (w_xxxx + 2 w_xxyy + w_yyyy) = q,      w = 0 and no bending moment (w_xx = w_yy = 0) on the edges.

For q = sin(pi x) sin(pi y) Navier's solution is w = q / (4 pi^4 D), which the network is compared with at the end, and
never sees before.  What makes it a test of a framework: the loss holds fourth derivatives of the network, and training
differentiates that once more.  Each derivative is `paddle.grad(..., create_graph=True)`.

    python examples/plate_bending.py [--steps 400]

(Raissi, Perdikaris, Karniadakis, Physics-informed neural networks, 2019; Timoshenko, Woinowsky-Krieger, Theory of
Plates and Shells, 2nd ed., section 27.)
"""

from __future__ import annotations

import argparse
import math

import numpy as np

import minipd as paddle
from minipd import nn

D = 1.0                             # stiffness, N m
SCALE = 4 * math.pi**4 * D          # the network's output is w * SCALE: numbers near 1 are easier to learn


class Deflection(nn.Layer):
    """[n, 1], [n, 1] -> [n, 1]: w * SCALE at n points.  The factor x (1 - x) y (1 - y) holds the edges down."""

    def __init__(self, width: int = 24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                 nn.Linear(width, 1))

    def forward(self, x: paddle.Tensor, y: paddle.Tensor) -> paddle.Tensor:
        return self.net(paddle.concat([x, y], axis=1)) * (x * (1.0 - x) * y * (1.0 - y) * 16.0)


def second_derivatives(f: paddle.Tensor, x: paddle.Tensor, y: paddle.Tensor) -> tuple[paddle.Tensor, paddle.Tensor]:
    """f_xx and f_yy, [n, 1] each.  A point's f depends on that point alone, so the gradient of the sum of f over all
    points holds every point's own derivative."""
    f_x, f_y = paddle.grad(f.sum(), [x, y], create_graph=True)
    (f_xx,) = paddle.grad(f_x.sum(), x, create_graph=True)
    (f_yy,) = paddle.grad(f_y.sum(), y, create_graph=True)
    return f_xx, f_yy


def points(n: int) -> tuple[np.ndarray, np.ndarray]:
    """(inside [n * n, 2], on the four edges [4 n, 2]): midpoints of a grid."""
    t = (np.arange(n) + 0.5) / n
    inside = np.stack(np.meshgrid(t, t), -1).reshape(-1, 2)
    zero, one = np.zeros(n), np.ones(n)
    edges = np.concatenate([np.stack(e, -1) for e in ((t, zero), (t, one), (zero, t), (one, t))])
    return inside, edges


def coordinates(at: np.ndarray) -> tuple[paddle.Tensor, paddle.Tensor]:
    """x and y of points, as leaves that derivatives can be taken by."""
    x, y = (paddle.to_tensor(at[:, i:i + 1], dtype="float64", stop_gradient=False) for i in (0, 1))
    return x, y


def load(x: paddle.Tensor, y: paddle.Tensor) -> paddle.Tensor:
    """q at the points."""
    return paddle.sin(x * math.pi) * paddle.sin(y * math.pi)


def loss_of(model: Deflection, inside: np.ndarray, edges: np.ndarray) -> paddle.Tensor:
    """How far the network is from Kirchhoff's equation inside, and from a free hinge on the edges."""
    x, y = coordinates(inside)
    w_xx, w_yy = second_derivatives(model(x, y), x, y)
    v_xx, v_yy = second_derivatives(w_xx + w_yy, x, y)                  # the Laplacian of the Laplacian
    equation = (v_xx + v_yy) * (D / SCALE) - load(x, y)
    x, y = coordinates(edges)
    w_xx, w_yy = second_derivatives(model(x, y), x, y)
    moment = (w_xx + w_yy) * (1.0 / math.pi**2)
    return (equation * equation).mean() + (moment * moment).mean()


def solve(steps: int, width: int = 24, n: int = 8, report: int = 50) -> float:
    """Train, and return the error at points between those of the training.  In float64 (the default dtype)."""
    paddle.seed(1)
    model = Deflection(width)
    schedule = paddle.optimizer.lr.CosineAnnealingDecay(1e-2, steps)
    optimizer = paddle.optimizer.Adam(schedule, parameters=model.parameters())
    inside, edges = points(n)
    for step in range(1, steps + 1):
        loss = loss_of(model, inside, edges)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        schedule.step()
        if report and (step % report == 0 or step == 1):
            print(f"step {step:5}   loss {loss.item():.3e}   error {100 * error(model):.2f} %")
    return error(model)


def error(model: Deflection) -> float:
    """The largest difference from Navier's solution, relative to the deflection in the middle."""
    x, y = coordinates(points(13)[0])
    with paddle.no_grad():
        return float((model(x, y) - load(x, y)).abs().max())


def main() -> None:
    options = argparse.ArgumentParser(description="a plate under load, by a physics-informed network")
    options.add_argument("--steps", type=int, default=400, help="of Adam (400)")
    given = options.parse_args()
    paddle.set_default_dtype("float64")
    final = solve(given.steps)
    print(f"deflection within {100 * final:.2f} % of Navier's solution everywhere")


if __name__ == "__main__":
    main()
