"""`report.html`: a run on one page, drawn from what the run has left in its folder.

The page is complete in itself: it loads nothing, runs no script, and prints.  What a run has not left (the timeline of
a pipeline that it had not, programs of an eager run) is left out.

    run           reads the folder
    figures       draws
    parameters    the table of parameters
    page.html     the page
"""

from __future__ import annotations

import argparse
import math
import statistics
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from minipd.framework.errors import InputError
from minipd.framework.files import reason, write_atomically
from minipd.models.progress import duration
from minipd.models.report import figures
from minipd.models.report.parameters import stages
from minipd.models.report.run import Run, read_run
from minipd.viz.style import sheet
from minipd.viz.svg import Svg

__all__ = ["main", "report_at_the_end", "write_report"]

REPORT, CURVE = "report.html", "loss.svg"


def main(argv: list[str]) -> int:
    """`minipd report RUN`: write the report of a run anew; returns the exit status."""
    parser = argparse.ArgumentParser(prog="minipd report", description="write the report of a run, from its folder")
    parser.add_argument("run", type=Path, help="the folder of the run, such as runs/0001")
    print(write_report(parser.parse_args(argv).run))
    return 0


def write_report(run: Path) -> Path:
    """Write `report.html` into a run folder, whole or not at all, and its loss curve as `loss.svg`; returns its path.

    Raises: InputError if it is no run folder, a file in it is not what it should be, or it cannot be written.
    """
    found = read_run(run)
    page, curve = html(found), figures.loss(found)
    try:
        write_atomically(run / REPORT, page)
    except OSError as error:
        raise InputError("a run folder that can be written", f"{run} ({reason(error)})", "change its rights") from None
    if curve is not None:
        curve.save(run / CURVE)
    return run / REPORT


def report_at_the_end(run: Path) -> str:
    """Write the report of a run that has just ended; returns the line that says so.

    Whatever goes wrong here is said in that line and not raised: the run itself is done, and `minipd report` can be
    tried again.
    """
    try:
        return f"report: {write_report(run)}"
    except Exception as error:
        return f"warning: no report of {run} ({type(error).__name__}: {error}); try `minipd report {run}`"


def html(run: Run) -> str:
    """The page."""
    environment = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True,
                              lstrip_blocks=True, undefined=StrictUndefined)
    environment.filters["svg"] = _inline
    return environment.get_template("page.html").render(
        run=run, facts=facts(run), style=Markup(sheet()), loss=figures.loss(run), mesh=figures.mesh(run),
        measured=figures.measured(run), ideal=figures.ideal(run), memory=figures.memory(run),
        fusion=figures.fusion(run), stages=stages(run.parameters))


def _inline(picture: Svg) -> Markup:
    return Markup(picture.inline())


def facts(run: Run) -> list[tuple[str, str]]:
    """What is said first, as (value, what it is)."""
    found: list[tuple[str, Any]] = []
    if run.metrics:
        last = run.metrics[-1]
        found.append((f"{last['step']:,}", f"step{'s' * (last['step'] > 1)}"))
        found.append((f"{last['loss']:.3f}", "training loss, last step"))
        validated = [row["val_loss"] for row in run.metrics if "val_loss" in row]
        if validated:
            found.append((f"{validated[-1]:.3f}", "validation loss"))
        # The median: the first step compiles, and a validation is not part of a step.
        speed = statistics.median(row["tokens"] / max(row["seconds"], 1e-9) for row in run.metrics)
        found.append((f"{speed:,.0f}", "tokens per second"))
        found.append((duration(sum(row["seconds"] for row in run.metrics)), "in training steps"))
        skipped = sum(1 for row in run.metrics if row.get("skipped"))
        if skipped:
            found.append((str(skipped), "steps skipped: the gradient was not finite"))
    if run.parameters:
        found.append((f"{sum(math.prod(p.shape) for p in run.parameters):,}", "parameters"))
    found.append((str(run.config.dist.ranks), f"rank{'s' * (run.config.dist.ranks > 1)}"))
    return found
