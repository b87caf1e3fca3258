"""Committed pictures are what their scripts draw."""

import runpy
import xml.etree.ElementTree as ElementTree
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"


def test_the_overview_is_up_to_date_and_well_formed():
    drawn = runpy.run_path(str(DOCS / "draw_overview.py"))["overview"]()
    assert (DOCS / "overview.svg").read_text(encoding="utf-8") == drawn, "run: python docs/draw_overview.py"
    ElementTree.fromstring(drawn)
