"""The progress display, with a clock of our own: what it prints, on a terminal and in a log."""

import io
import itertools

import pytest
from rich.console import Console

from minipd.models import progress
from minipd.models.progress import TrainingProgress, peak_memory


@pytest.fixture(autouse=True)
def memory(monkeypatch):
    monkeypatch.setattr(progress, "peak_memory", lambda: 300 * 2**20)


def console(terminal):
    return Console(file=io.StringIO(), force_terminal=terminal, width=80, color_system=None, legacy_windows=False)


def run(steps, start=0, terminal=False, shown=True):
    """Steps of 0.5 s and 2048 tokens; what was printed."""
    clock = map(lambda tick: tick / 2, itertools.count())
    out = console(terminal)
    shower = TrainingProgress(steps, start, shown, out, clock=lambda: next(clock))
    for step in range(start + 1, steps + 1):
        shower.update(step, loss=7 - step / 100, tokens=2048)
    shower.note("validation loss [4.05]")
    shower.finish()
    return out.file.getvalue()


def test_a_line():
    first = run(3).splitlines()[0]
    assert first == "step 1/3  loss 6.9900  4,096 tokens/s  300 MiB  0:01 left"


def test_a_log_of_a_long_run_is_short():
    lines = run(400).splitlines()
    assert [line.split()[1] for line in lines[:-1]] == ["1/400"] + [f"{step}/400" for step in range(20, 401, 20)]
    assert lines[5] == "step 100/400  loss 6.0000  4,096 tokens/s  300 MiB  2:30 left"
    assert lines[-2] == "step 400/400  loss 3.0000  4,096 tokens/s  300 MiB  0:00 left"
    assert lines[-1] == "validation loss [4.05]"  # rich would take the brackets for markup


def test_a_resumed_run():
    lines = run(30, start=20).splitlines()
    assert lines[0] == "step 21/30  loss 6.7900  4,096 tokens/s  300 MiB  0:04 left"
    assert len(lines) == 11


def test_speed_is_that_of_the_last_steps():
    seconds = iter([0.0] + [100.0 + step for step in range(60)])  # a slow first step, then one a second
    out = console(False)
    shower = TrainingProgress(60, console=out, clock=lambda: next(seconds))
    for step in range(1, 61):
        shower.update(step, 1.0, tokens=10)
    lines = out.file.getvalue().splitlines()
    assert "  0 tokens/s" in lines[0] and "1:38:20 left" in lines[0]  # 59 steps of 100 s
    assert "  10 tokens/s" in lines[-1]


def test_a_terminal_shows_a_bar_and_notes_above_it():
    printed = run(3, terminal=True)
    assert "━" in printed
    assert "step 3/3  loss 6.9700  4,096 tokens/s  300 MiB  0:00 left" in printed
    assert "validation loss [4.05]" in printed
    assert printed.count("\x1b[?25l") == printed.count("\x1b[?25h") == 1  # the cursor comes back


@pytest.mark.parametrize("terminal", [True, False])
def test_other_ranks_print_nothing(terminal):
    assert run(3, shown=False, terminal=terminal) == ""


def test_finish_may_come_twice_or_at_once():
    for _ in range(2):
        shower = TrainingProgress(3, console=console(True))
        shower.finish()
        shower.finish()


def test_a_system_that_does_not_tell_its_memory(monkeypatch):
    monkeypatch.setattr(progress, "peak_memory", lambda: None)
    assert run(1).splitlines()[0] == "step 1/1  loss 6.9900  4,096 tokens/s  0:00 left"


def test_peak_memory_is_in_bytes():
    assert 2**23 < peak_memory() < 2**40  # Python with numpy holds some tens of MiB
