"""Later floors are closed when asked, and nothing imports upward."""

import os
import subprocess
import sys
from types import ModuleType
from unittest.mock import patch

import pytest

import minipd
from minipd.framework.floors import ClosedFloorError, ClosedFloors, Floor, highest_floor, wire

TWO_FLOORS = (Floor(1, opens=("ground",), exports=("ground",)), Floor(2, opens=("upper", "viz.upper")))


def run_under_floor(floor: str, code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, "MINIPD_FLOOR": floor}, capture_output=True,
                          text=True, timeout=120)


def test_chapters_are_numbered_from_one_and_share_no_module():
    assert [floor.number for floor in minipd.FLOORS] == list(range(1, 10))
    opened = [module for floor in minipd.FLOORS for module in floor.opens]
    assert len(opened) == len(set(opened))


def test_what_a_floor_imports_it_opens():
    for floor in minipd.FLOORS:
        for module in floor.exports + floor.imports:
            opened = any(f"{module}.".startswith(f"{package}.") for package in floor.opens)
            assert opened, f"floor {floor.number} imports {module}, not its own"


@pytest.mark.parametrize("chapter", [floor.number for floor in minipd.FLOORS])
def test_minipd_imports_with_later_floors_closed(chapter):
    later = [module for floor in minipd.FLOORS[chapter:] for module in floor.opens]
    code = ("import sys, minipd\n"
            f"later = {later}\n"
            "print([m for m in sys.modules for l in later if f'{m}.'.startswith(f'minipd.{l}.')])")
    done = run_under_floor(str(chapter), code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_a_closed_floor_says_which_chapter_opens_it():
    done = run_under_floor("4", "import minipd.dist.placements")
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        "minipd.framework.floors.ClosedFloorError: floor 5 is closed in chapter 4: minipd.dist is built in chapter 5; "
        "set MINIPD_FLOOR=5 or unset it")


def test_an_unknown_chapter_is_refused():
    done = run_under_floor("ten", "import minipd")
    assert done.stderr.strip().splitlines()[-1] == (
        "ImportError: MINIPD_FLOOR: expected a chapter number from 1 to 9, got 'ten'; unset it to open every floor")


@pytest.mark.parametrize(("text", "floor"), [("", 2), ("1", 1), ("2", 2)])
def test_highest_floor(text, floor):
    assert highest_floor(TWO_FLOORS, {"MINIPD_FLOOR": text}) == floor
    assert highest_floor(TWO_FLOORS, {}) == 2


@pytest.mark.parametrize("text", ["0", "3", "-1", "1.0", " "])
def test_highest_floor_refuses(text):
    with pytest.raises(ImportError, match="expected a chapter number from 1 to 2"):
        highest_floor(TWO_FLOORS, {"MINIPD_FLOOR": text})


def test_a_package_closes_with_everything_in_it_and_nothing_else():
    gate = ClosedFloors("pkg", TWO_FLOORS, chapter=1)
    for name in ("pkg.upper", "pkg.upper.deep.inside", "pkg.viz.upper"):
        with pytest.raises(ClosedFloorError, match=f"floor 2 is closed in chapter 1: {name} is built in chapter 2"):
            gate.find_spec(name)
    for name in ("pkg", "pkg.ground", "pkg.uppermost", "pkg.viz", "upper"):
        assert gate.find_spec(name) is None


def test_two_modules_may_not_export_one_name():
    one, two = ModuleType("pkg.one"), ModuleType("pkg.two")
    one.__all__ = two.__all__ = ["add"]
    one.add, two.add = "first", "second"
    floors = (Floor(1, opens=("one", "two"), exports=("one", "two")),)
    with patch.dict(sys.modules, {"pkg": ModuleType("pkg"), "pkg.one": one, "pkg.two": two}):
        with pytest.raises(ImportError, match="pkg.two exports 'add', but an earlier module does too: 'first' and"):
            wire("pkg", floors, {})
        two.add = one.add
        assert wire("pkg", floors, {}) == {"add": "first"}


def test_the_contract_of_the_floors_holds():
    lint = os.path.join(os.path.dirname(sys.executable), "lint-imports")
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    done = subprocess.run([lint, "--no-cache"], cwd=root, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    assert "Contracts: 8 kept, 0 broken." in done.stdout
