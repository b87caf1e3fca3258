"""What rank 0 shows while training: step, loss, tokens per second, memory, time left.

On a terminal a bar that is redrawn in place; elsewhere, such as in a log file, a plain line now and then.
"""

import sys
import time
from collections import deque
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

WINDOW = 50  # steps over which speed is averaged: short enough to see it change, long enough to be calm
PLAIN_LINES = 20  # in a log, about this many lines for a whole run


class TrainingProgress:
    """Shows how training goes; all ranks but the first make one with `shown=False`, which does nothing.

    Args:
        steps: the last step.
        start: steps done before, in a resumed run.
        shown: whether to print anything.
        console: where to print; by default standard output. Under an MPI launcher, which puts a pipe between rank 0 and
            the terminal, the environment variables TTY_COMPATIBLE=1 and COLUMNS tell rich of the terminal at its end.
        clock: seconds, for tests.

    >>> progress = TrainingProgress(steps=2, console=Console(file=sys.stdout, width=120), clock=lambda: 0.0)
    >>> progress.update(1, loss=6.5, tokens=2048)  # doctest: +ELLIPSIS
    step 1/2  loss 6.5000  ...
    >>> progress.finish()
    """

    def __init__(
        self,
        steps: int,
        start: int = 0,
        shown: bool = True,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._steps = steps
        self._start = start
        self._shown = shown
        self._console = console or Console()
        self._clock = clock
        self._times = deque([clock()], WINDOW + 1)  # when the last steps ended, and how many tokens each took
        self._tokens: deque[int] = deque(maxlen=WINDOW)
        self._every = max(1, (steps - start) // PLAIN_LINES)
        self._bar: Progress | None = None
        if shown and self._console.is_terminal:
            self._bar = Progress(
                BarColumn(bar_width=16),  # leaves a line of 80 characters room for the text
                TextColumn("{task.description}", markup=False),
                console=self._console,
                auto_refresh=False,
            )
            self._task = self._bar.add_task("", total=steps, completed=start)
            self._bar.start()

    def update(self, step: int, loss: float, tokens: int) -> None:
        """Show that a step is done.

        Args:
            step: its number, from 1.
            loss: in nats per token.
            tokens: how many tokens the step took, over all ranks.
        """
        if not self._shown:
            return
        self._times.append(self._clock())
        self._tokens.append(tokens)
        line = self._line(step, loss)
        if self._bar is not None:
            self._bar.update(self._task, completed=step, description=line)
            self._bar.refresh()
        elif step % self._every == 0 or step in (self._start + 1, self._steps):
            self._print(line)

    def note(self, text: str) -> None:
        """Print a line of its own, above the bar: a validation loss, where a checkpoint is."""
        if self._shown:
            self._print(text)

    def finish(self) -> None:
        """Leave the last state on the screen, and the cursor below it. Safe to call twice, and after an error."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
            self._shown = False

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
        self._console.file.flush()  # through a pipe, lines would come in blocks

    def _line(self, step: int, loss: float) -> str:
        seconds = self._times[-1] - self._times[0]
        parts = [f"step {step}/{self._steps}", f"loss {loss:.4f}"]
        if seconds > 0:
            left = (self._steps - step) * seconds / len(self._tokens)
            parts += [f"{sum(self._tokens) / seconds:,.0f} tokens/s", f"{duration(left)} left"]
        memory = peak_memory()
        if memory is not None:
            parts.insert(-1 if seconds > 0 else len(parts), f"{memory / 2**20:,.0f} MiB")
        return "  ".join(parts)


def duration(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any.

    >>> duration(5), duration(75.2), duration(3671)
    ('0:05', '1:15', '1:01:11')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def peak_memory() -> int | None:
    """The most memory that this process has held (resident set), in bytes; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # Linux counts in KiB
