"""The list of passes that a predictor runs, which may be changed before it is made."""

from __future__ import annotations

from collections.abc import Sequence

from minipd.passes.pipelines import inference_passes

__all__ = ["PassBuilder"]


class PassBuilder:
    """Passes by name, in order; at first those of `passes.pipelines.INFERENCE_PASSES`.

    A name is looked up when the predictor is made, so that a pass of one's own may be imported in between.

    >>> builder = PassBuilder(["constant_folding_pass", "dead_code_elimination_pass"])
    >>> builder.insert_pass(1, "silu_fuse_pass")
    >>> builder.delete_pass("constant_folding_pass")
    >>> builder.all_passes()
    ['silu_fuse_pass', 'dead_code_elimination_pass']
    """

    def __init__(self, passes: Sequence[str] | None = None):
        self._passes = inference_passes() if passes is None else list(passes)
        self.debug = False

    def all_passes(self) -> list[str]:
        """The names, in order."""
        return list(self._passes)

    def append_pass(self, name: str) -> None:
        """Add a pass at the end."""
        self._passes.append(name)

    def insert_pass(self, index: int, name: str) -> None:
        """Add a pass before the one of that number."""
        self._passes.insert(index, name)

    def delete_pass(self, name: str) -> None:
        """Take a pass out, wherever it stands; nothing happens if it does not."""
        self._passes = [each for each in self._passes if each != name]

    def set_passes(self, passes: Sequence[str]) -> None:
        """Let these be the passes."""
        self._passes = list(passes)

    def turn_on_debug(self) -> None:
        """Verify the program after every pass, and after every rewrite."""
        self.debug = True

    def debug_string(self) -> str:
        """The names, one a line."""
        return "\n".join([*(f"  - {name}" for name in self._passes), ""])
