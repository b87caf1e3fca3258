"""L-BFGS: Newton's method with curvature learned from the last steps (Nocedal, Wright 2006, algorithm 7.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.autograd.mode import enable_grad
from minipd.framework.context import using
from minipd.framework.tensor import Tensor
from minipd.ops.creation import Assign, zeros_like
from minipd.ops.joining import concat, split
from minipd.ops.math import abs
from minipd.ops.reduce import max, sum
from minipd.ops.reshape import reshape
from minipd.optimizer.line_search import Point, strong_wolfe
from minipd.optimizer.optimizer import Optimizer, replace

__all__ = ["LBFGS"]

KEPT = ("direction", "length", "gradient", "steps", "changes", "scale", "iterations", "evaluations")


class LBFGS(Optimizer):
    """Minimizes a loss that it may evaluate several times per step: `step(closure)`.

    Args:
        learning_rate: the length of a step, without line search; the first length to try, with it.
        max_iter: iterations per step.  max_eval: evaluations of the closure per step; max_iter * 5 / 4 unless given.
        tolerance_grad: stop when no element of the gradient is larger.
        tolerance_change: stop when neither parameters nor loss change by more.
        history_size: how many steps curvature is learned from.
        line_search_fn: "strong_wolfe" or None.

    Raises: ValueError for another line search, and for weight_decay and grad_clip, which would change the gradient and
        not the loss.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([3.0, -2.0], stop_gradient=False)
    >>> lbfgs = LBFGS(line_search_fn="strong_wolfe", parameters=[x])
    >>> def closure():
    ...     lbfgs.clear_grad()
    ...     loss = ((x - to_tensor([1.0, 2.0])) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> lbfgs.step(closure).item()              # the loss before the step
    20.0
    >>> [round(v, 4) for v in x.tolist()]
    [1.0, 2.0]
    """

    def __init__(self, learning_rate: Any = 1.0, max_iter: int = 20, max_eval: int | None = None,
                 tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = None, parameters: Any = None, weight_decay: Any = None,
                 grad_clip: Any = None, name: str | None = None):
        super().__init__(learning_rate, parameters, None, None, name)
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"LBFGS: expected line_search_fn to be 'strong_wolfe' or None, got {line_search_fn!r}")
        if weight_decay is not None or grad_clip is not None:
            raise ValueError("LBFGS: expected no weight_decay and no grad_clip, which would change the gradient and "
                             "not the loss; add a term to the loss instead")
        self.max_iter, self.max_eval = max_iter, max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.history_size, self.line_search_fn = history_size, line_search_fn
        self.direction: Any = None          # the last one, and how far it was followed
        self.length = 0.0
        self.gradient: Any = None           # before that step
        self.steps: list[Tensor] = []       # the last steps, and how each changed the gradient
        self.changes: list[Tensor] = []
        self.scale = 1.0                    # of the first guess at the inverse curvature
        self.iterations = self.evaluations = 0

    def step(self, closure: Callable[[], Tensor]) -> Tensor:            # type: ignore[override]
        """Iterate from where the parameters are.

        closure: clears the gradients, computes the loss, calls `backward` and returns the loss.
        Returns: the loss before the step.
        """
        def evaluate() -> tuple[Tensor, float, Tensor]:
            with enable_grad():
                loss = closure()
            self.evaluations += 1
            return loss, loss.item(), self._flat_gradient()

        with using(grad=False):
            first, loss, g = evaluate()
            limit = self.evaluations - 1 + self.max_eval
            for i in range(self.max_iter):
                if _largest(g) <= self.tolerance_grad:
                    break
                self._learn(g)
                d, before = self.direction, loss
                slope = _dot(g, d)
                if slope > -self.tolerance_change:
                    break
                t = self.get_lr() * (min(1.0, 1 / float(sum(abs(g)))) if self.iterations == 1 else 1.0)
                if self.line_search_fn is not None:
                    loss, g, t = self._search(evaluate, Point(0.0, loss, slope, g), t)
                else:
                    self._move(d * t)
                    if i + 1 < self.max_iter:
                        _, loss, g = evaluate()
                self.length = t
                if self.evaluations >= limit or _largest(d * t) <= self.tolerance_change or (
                        i + 1 < self.max_iter and _near(loss, before, self.tolerance_change)):
                    break
        return first

    def _learn(self, g: Tensor) -> None:
        """The next direction, -H g, with H learned from the steps so far."""
        self.iterations += 1
        if self.direction is not None:
            change, step = g - self.gradient, self.direction * self.length
            curvature = _dot(change, step)
            if curvature > 1e-10:
                self.steps, self.changes = [*self.steps, step], [*self.changes, change]
                del self.steps[:-self.history_size], self.changes[:-self.history_size]
                self.scale = curvature / _dot(change, change)
        self.gradient = g
        along, q = [], -g
        pairs = [(s, y, 1 / _dot(y, s)) for s, y in zip(self.steps, self.changes, strict=True)]
        for s, y, rho in reversed(pairs):
            along.append(rho * _dot(s, q))
            q = q - y * along[-1]
        q = q * self.scale
        for (s, y, rho), a in zip(pairs, reversed(along), strict=True):
            q = q + s * (a - rho * _dot(y, q))
        self.direction = q

    def _search(self, evaluate: Callable, start: Point, t: float) -> tuple[float, Tensor, float]:
        """(loss, gradient, length) where the line search ends; the parameters are there then."""
        # Copies: a parameter of which there are views is written in place.
        d, origin = self.direction, [Assign(p) for p in self._parameter_list]

        def at(t: float) -> Point:
            self._move(d * t, origin)
            _, loss, g = evaluate()
            return Point(t, loss, _dot(g, d), g)
        found, _ = strong_wolfe(at, start, t, tolerance=self.tolerance_change / (_largest(d) or 1.0))
        self._move(d * found.step, origin)
        return found.loss, found.gradient, found.step

    def _flat_gradient(self) -> Tensor:
        """The gradients of all parameters as one vector, zero where there is none."""
        if not self._parameter_list:
            self._gradients(None)           # says what is missing
        grads = [zeros_like(p) if p.grad is None else p.grad for p in self._parameter_list]
        return concat([reshape(g, [-1]) for g in grads], 0)

    def _move(self, step: Tensor, origin: Any = None) -> None:
        """Add a vector to the parameters, or to where they were."""
        params = self._parameter_list
        parts = split(step, [p.size for p in params], 0) if len(params) > 1 else [step]
        for i, (p, part) in enumerate(zip(params, parts, strict=True)):
            replace(p, (p if origin is None else origin[i]) + reshape(part, p.shape))

    def state_dict(self) -> dict[str, Any]:
        """What the next step depends on, apart from the parameters."""
        return {"state": {name: getattr(self, name) for name in KEPT}}

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Return to a state from `state_dict`.

        Raises: ValueError if it is something else.
        """
        given = state_dict.get("state", {})
        if given.keys() != set(KEPT):
            raise ValueError(f"state of LBFGS: expected an entry 'state' with {', '.join(KEPT)}, got "
                             f"{', '.join(map(str, given or state_dict))}")
        for name in KEPT:
            setattr(self, name, list(given[name]) if isinstance(given[name], list) else given[name])

    load_state_dict = set_dict = set_state_dict


def _dot(x: Tensor, y: Tensor) -> float:
    return float(sum(x * y))


def _largest(x: Tensor) -> float:
    return float(max(abs(x)))


def _near(a: float, b: float, tolerance: float) -> bool:
    return -tolerance < a - b < tolerance
