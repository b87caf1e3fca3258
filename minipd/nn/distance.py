"""Distances as layers."""

from __future__ import annotations

from minipd.nn import functional as F
from minipd.nn.function_layer import FunctionLayer

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class CosineSimilarity(FunctionLayer):
    """`functional.cosine_similarity`."""

    function = staticmethod(F.cosine_similarity)

    def __init__(self, axis: int = 1, eps: float = 1e-8):
        super().__init__(axis=axis, eps=eps)


class PairwiseDistance(FunctionLayer):
    """`functional.pairwise_distance`."""

    function = staticmethod(F.pairwise_distance)

    def __init__(self, p: float = 2.0, epsilon: float = 1e-6, keepdim: bool = False, name: str | None = None):
        super().__init__(name, p=p, epsilon=epsilon, keepdim=keepdim)

    def extra_repr(self) -> str:
        shown = [f"p={self.p}", f"epsilon={self.epsilon}", f"keepdim={self.keepdim}", f"name={self.name}"]
        differs = [True, self.epsilon != 1e-6, self.keepdim is not False, self.name is not None]
        return ", ".join(text for text, shows in zip(shown, differs, strict=True) if shows)
