"""What the repository must not contain: addresses of package registries, and paths of the machine it was written on."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Written so that this file does not contain what it looks for.
REGISTRIES = ["pypi" + r"\.org", "python" + r"hosted\.org", "registry" + r"\.npmjs", "deb" + r"\.debian\.org",
              r"/simple" + "/", "index" + "-url" + r"[ =]\S*//"]
MACHINE_PATHS = [r"(?<![\w.])/(root|home|work)/" + r"[\w.]", r"[A-Z]:\\" + "Users"]
FORBIDDEN = re.compile("|".join(REGISTRIES + MACHINE_PATHS))


def committed_texts() -> list[Path]:
    """Every text file under version control."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, timeout=60)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file() and b"\0" not in path.read_bytes()[:8192]]


@pytest.mark.parametrize("bad", ["https://pypi" + ".org/simple", "see /ro" + "ot/.cache", "cd /wo" + "rk/main",
                                 "/ho" + "me/me/minipd"])
def test_the_pattern_finds_what_it_should(bad):
    assert FORBIDDEN.search(bad)


@pytest.mark.parametrize("good", ["a/wo" + "rk/b", "MINIPD_CACHE=/a/folder", "s/ro" + "ot/base/", "tests/wo" + "rk"])
def test_the_pattern_spares_what_it_should(good):
    assert not FORBIDDEN.search(good)


def test_no_registry_and_no_machine_path_is_named():
    found = [f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
             for path in committed_texts()
             for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
             if FORBIDDEN.search(line)]
    assert found == []
