"""The picture of a run: its format, its lines, and that it is the same each time."""

import math
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from minipd.models.plot import loss_curve

METRICS = [
    {"step": 1, "loss": 6.9, "lr": 0.1},
    {"step": 2, "loss": 6.0},
    {"step": 2, "val_loss": 6.2},
    {"step": 3, "loss": math.nan},
    {"step": 4, "loss": 5.0, "val_loss": 5.1},
]


def test_svg(tmp_path):
    path = loss_curve(METRICS, tmp_path / "loss.svg", unigram=5.9, bigram=3.94)
    text = path.read_text()
    ElementTree.fromstring(text)
    for label in ("training", "validation", "unigram counts, 5.90", "bigram counts, 3.94", "step"):
        assert f"<!-- {label} -->" in text


def test_png(tmp_path):
    assert loss_curve(METRICS, tmp_path / "loss.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_only_what_was_measured_is_drawn(tmp_path):
    text = loss_curve(METRICS[:2], tmp_path / "loss.svg").read_text()
    assert "<!-- training -->" in text
    assert "validation" not in text and "unigram" not in text


def test_a_run_without_steps(tmp_path):
    ElementTree.parse(loss_curve([], tmp_path / "loss.svg"))


def test_the_same_run_gives_the_same_file(tmp_path):
    first = loss_curve(METRICS, tmp_path / "one.svg", unigram=5.9).read_bytes()
    assert loss_curve(iter(METRICS), tmp_path / "two.svg", unigram=5.9).read_bytes() == first


def test_an_ending_that_is_no_picture_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="txt"):
        loss_curve(METRICS, tmp_path / "loss.txt")
    assert list(tmp_path.iterdir()) == []


def test_matplotlib_is_imported_when_it_draws_and_pyplot_never(tmp_path):
    code = (
        "import sys; from minipd.models.plot import loss_curve; assert 'matplotlib' not in sys.modules;"
        "loss_curve([], sys.argv[1]); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "loss.png"], check=True)
