"""The loss curve of a run, as a picture."""

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from minipd.framework.files import write_atomically


def loss_curve(
    metrics: Iterable[Mapping[str, Any]],
    path: str | Path,
    unigram: float | None = None,
    bigram: float | None = None,
) -> Path:
    """Draw training and validation loss over steps, with the losses of counting models as lines to get below.

    Args:
        metrics: rows with "step", and "loss" or "val_loss" or both, in nats per token; what `read_metrics` gives.
        path: the picture; its ending says the format, .svg or .png. Whole or absent.
        unigram, bigram: entropies of the held-out text, in nats per token (see `entropy`).

    Returns:
        `path`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     picture = loss_curve([{"step": 1, "loss": 6.9}, {"step": 2, "loss": 6.1}], Path(folder, "loss.svg"))
    ...     "</svg>" in picture.read_text()
    True
    """
    # Here, not above: matplotlib takes a second to import. Its objects are used without pyplot, which would keep
    # figures in a global list and look for a display.
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = list(metrics)
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for name, label, style in (("loss", "training", {"linewidth": 1}), ("val_loss", "validation", {"marker": "o"})):
        points = [(row["step"], row[name]) for row in rows if name in row]
        if points:
            axes.plot(*zip(*points, strict=True), label=label, **style)
    for value, label, dash in ((unigram, "unigram", ":"), (bigram, "bigram", "--")):
        if value is not None:
            axes.axhline(value, color="gray", linestyle=dash, linewidth=1, label=f"{label} counts, {value:.2f}")
    axes.set_xlabel("step")
    axes.set_ylabel("loss (nats per token)")
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend()

    kind = Path(path).suffix[1:]
    picture = io.BytesIO()
    # No date and no random ids: the same run gives the same file.
    with matplotlib.rc_context({"svg.hashsalt": "minipd"}):
        figure.savefig(picture, format=kind, metadata={"Date": None} if kind == "svg" else None, dpi=120)
    write_atomically(Path(path), picture.getvalue())
    return Path(path)
