"""The three forms of the package: in place, a wheel of sources, and a wheel that needs no compiler."""

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.helpers.rooms import python_files

pytest.importorskip("hatchling")
pytest.importorskip("editables")
ROOT = Path(__file__).resolve().parents[2]
BUILD = "import sys; from hatchling import build; print(getattr(build, sys.argv[1])(sys.argv[2]))"
RUN = ("-P", "-m", "cli", "run", "smoke", "--world", "simulated", "--seed", "7", "--plain", "--runs")


def built(kind: str, into: Path, **environment: str) -> Path:
    done = subprocess.run(
        [sys.executable, "-c", BUILD, kind, str(into)],
        cwd=ROOT, env={**os.environ, "SOURCE_DATE_EPOCH": "1790000000", **environment}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (wheel,) = into.iterdir()
    return wheel


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as packed:
        return packed.namelist()


def test_an_installation_in_place_points_to_the_clone_once(tmp_path: Path) -> None:
    wheel = built("build_editable", tmp_path)
    (pointer,) = [name for name in names(wheel) if name.endswith(".pth")]
    with zipfile.ZipFile(wheel) as packed:
        assert packed.read(pointer).decode().split() == [str(ROOT)]
    assert not [name for name in names(wheel) if name.endswith(".py")]


def test_a_wheel_of_sources_has_one_folder_at_the_top_and_no_tests(tmp_path: Path) -> None:
    wheel = built("build_wheel", tmp_path, MRCLAB_RELEASE="")
    held = names(wheel)
    tops = {name.partition("/")[0] for name in held}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"mrclab.pth", "mrclab_lab"}
    assert wheel.name.endswith("-py3-none-any.whl")
    tracked = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    left_out = ("tests/", "docs/", "packages/benchmarks/")
    wanted = {f"mrclab_lab/{name}" for name in tracked.split() if not name.startswith(left_out) and "/" in name}
    assert wanted <= set(held)
    assert {"mrclab_lab/p4/leaf.p4", "mrclab_lab/libmrc/include/mrc.h"} <= set(held)
    assert not [name for name in held if name.endswith((".so", ".pyc"))]
    says_what_its_user_types(wheel, tmp_path)


def says_what_its_user_types(wheel: Path, folder: Path) -> None:
    """Help, answers, errors and starters of an installed wheel name `mrclab`; there is no `./lab`."""
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
    own = [str(folder / line) for line in (folder / "mrclab.pth").read_text().split()]
    path = os.pathsep.join([*own, sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    for words in ("--help", "run --help", "start 1", "course page 1", "step 1ms", "incident kinds"):
        done = subprocess.run(
            [sys.executable, "-S", "-P", "-m", "cli", *words.split()],
            env={**os.environ, "PYTHONPATH": path}, cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 2), done.stderr
        said = done.stdout + done.stderr
        assert "mrclab" in said, said
        assert "./lab" not in said, said
    assert "mrclab check 1" in (folder / "mylab/usids.py").read_text()


@pytest.mark.slow
def test_a_release_runs_without_a_compiler_as_the_clone_does_and_is_the_same_each_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        built("build_wheel", tmp_path / name, MRCLAB_RELEASE="1", XDG_CACHE_HOME=str(tmp_path / f"{name}-cache"))
    (wheel,), (again,) = (tmp_path / "one").iterdir(), (tmp_path / "two").iterdir()
    assert wheel.read_bytes() == again.read_bytes()
    assert re.fullmatch(r"mrclab-[\d.]+-(cp\d+)-\1-manylinux_2_\d+_\w+\.whl", wheel.name)
    home = tmp_path / "home"
    home.mkdir()
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(home)
        assert not [name for name in packed.namelist() if str(ROOT).encode() in packed.read(name)], "names this clone"
    # The packages it depends on are this environment's, by a path after its own; the clone is not on it.
    own = [str(home / line) for line in (home / "mrclab.pth").read_text().split()]
    path = os.pathsep.join([*own, sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    bare = {"HOME": str(home), "PATH": "/nonexistent", "CC": "/nonexistent", "PYTHONPATH": path}
    runs = []
    for name, environment in (("wheel", {**bare, "MRCLAB_COMPILED": "on"}), ("clone", dict(os.environ))):
        folder = tmp_path / "runs" / name
        words = [sys.executable, *(["-S"] if name == "wheel" else []), *RUN, str(folder)]
        done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + done.stdout
        (run,) = (folder / "smoke").iterdir()
        runs.append(run)
    from_wheel, from_clone = runs
    hosts = sorted(path.name for path in (from_clone / "journal").glob("*.jsonl") if path.name != "runner.jsonl")
    assert "switches.jsonl" in hosts
    for journal in hosts:
        assert (from_wheel / "journal" / journal).read_bytes() == (from_clone / "journal" / journal).read_bytes()


def test_no_message_advises_to_install_the_lab_by_name_from_an_index() -> None:
    """Whoever registers the name there would be installed by that advice."""
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *python_files()]
    assert len(files) > 100
    assert [str(file) for file in files if re.search(r"pip install [^\n]*\bmrclab\b(?![-/.])", file.read_text())] == []
