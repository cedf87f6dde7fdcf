"""The lab is used from its clone: it installs in place, and a wheel, which would lack half of it, is refused."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.helpers.rooms import python_files

pytest.importorskip("hatchling")
pytest.importorskip("editables")
ROOT = Path(__file__).resolve().parents[2]
BUILD = "import sys; from hatchling import build; print(getattr(build, sys.argv[1])(sys.argv[2]))"


def built(kind: str, into: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BUILD, kind, str(into)], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_a_wheel_is_refused_with_what_to_do_instead(tmp_path: Path) -> None:
    done = built("build_wheel", tmp_path)
    assert done.returncode != 0
    assert "mrclab is a clone, not a package: clone the repository and run ./lab install" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_installation_in_place_points_to_the_clone_once(tmp_path: Path) -> None:
    done = built("build_editable", tmp_path)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.iterdir()
    with zipfile.ZipFile(wheel) as packed:
        (pointer,) = [name for name in packed.namelist() if name.endswith(".pth")]
        assert packed.read(pointer).decode().split() == [str(ROOT)]
        assert not [name for name in packed.namelist() if name.endswith(".py")]


def test_readme_says_so() -> None:
    assert "a clone, not a package" in (ROOT / "README.md").read_text()


def test_no_message_advises_to_install_the_lab_by_name_from_an_index() -> None:
    """Whoever registers the name there would be installed by that advice."""
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *python_files()]
    assert len(files) > 100
    assert [str(file) for file in files if re.search(r"pip install [^\n]*\bmrclab\b(?![/.])", file.read_text())] == []
