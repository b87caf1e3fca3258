"""Committed pictures are what their scripts draw, and refer to nothing outside."""

import re
import runpy
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted(ROOT.glob("chapters/*/img/draw.py"))


def test_the_overview_is_up_to_date_and_well_formed():
    drawn = runpy.run_path(str(ROOT / "docs" / "draw_overview.py"))["overview"]()
    must_be(ROOT / "docs" / "overview.svg", drawn, "docs/draw_overview.py")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.parent.parent.name)
def test_pictures_of_chapters_are_up_to_date_and_well_formed(script):
    names = runpy.run_path(str(script))
    if "pictures" in names:
        drawn = {name: picture.svg for name, picture in names["pictures"]().items()}
    else:
        drawn = {name: draw() for name, draw in names["PICTURES"].items()}
    assert {path.name for path in script.parent.glob("*.svg")} == set(drawn)
    for name, text in drawn.items():
        must_be(script.with_name(name), text, str(script.relative_to(ROOT)))


def must_be(file: Path, drawn: str, script: str) -> None:
    """Fail unless the committed picture is what its script draws, well formed and complete in itself."""
    assert file.read_text(encoding="utf-8") == drawn, f"run: python {script}"
    title = ElementTree.fromstring(drawn).find("{http://www.w3.org/2000/svg}title")
    assert title is not None and title.text
    assert set(re.findall(r"https?://[^\"\s<)]*", drawn)) == {"http://www.w3.org/2000/svg"}
