"""Why a variable has no value: said where it is used.

Where a branch or a loop that the program decides leaves a variable without a value, or with one that cannot be had
either way, the variable is left empty.  Code that never looks at it goes on; code that does gets Python's NameError,
which is replaced here by one that says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from minipd.framework.rank import current

__all__: list[str] = []

REASONS = "dy2static_reasons"           # among this rank's flags, while a function is traced


class Undecided(TypeError):
    """A variable depends on a condition that only the program knows, and is no tensor."""


def leave_empty(where: str, name: str, why: str, error: type[Exception] = NameError) -> None:
    """Note why a variable has no value any more after the statement at `where`."""
    current().flags.setdefault(REASONS, {})[where.rpartition(":")[0], name] = (why, error)


@contextmanager
def explained() -> Iterator[None]:
    """Run transformed code; a NameError for a variable that was left empty says why.

    Raises: NameError, or TypeError where the variable has a value that is no tensor.
    """
    flags = current().flags
    before = flags.get(REASONS)
    flags[REASONS] = {}
    try:
        yield
    except NameError as error:
        found = _reason(error)
        if found is None:
            raise
        why, kind = found
        raise kind(why).with_traceback(error.__traceback__) from None
    except RecursionError as error:
        where = _innermost_branch(error)
        if where is None:
            raise
        raise RecursionError(
            f"expected a function that calls itself to end while it is traced, got one that a tensor ends (the "
            f"condition at {where}): both sides of such a branch are traced, and one of them calls the function again, "
            "for ever. Write a `while` loop, or end it by a Python number") from None
    finally:
        flags.pop(REASONS, None)
        if before is not None:
            flags[REASONS] = before


def _innermost_branch(error: RecursionError) -> str | None:
    """Where the branch is that was traced inside of itself, if that is what did not end."""
    trace, counts = error.__traceback__, Counter[str]()
    while trace is not None:
        branch = trace.tb_frame.f_locals.get("self")
        if branch is not None and hasattr(branch, "blocks") and hasattr(branch, "where"):
            counts[branch.where] += 1
        trace = trace.tb_next
    often = [where for where, count in counts.most_common(1) if count > 20]
    return often[0] if often else None


def _reason(error: NameError) -> tuple[str, type[Exception]] | None:
    """The reason that was noted for the variable that an error is about, with the line that used it."""
    trace = error.__traceback__
    if trace is None:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    file, line = trace.tb_frame.f_code.co_filename, trace.tb_lineno
    name = getattr(error, "name", None) or str(error).partition("'")[2].partition("'")[0]
    found = current().flags[REASONS].get((file, name))
    return None if found is None else (f"{found[0]}; it is used at {file}:{line}", found[1])
