"""The locks of `locks/` hold what pyproject.toml asks for, by digests; the three forms of the package are whole."""

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers.tracked import python_files

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "locks"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {"user": ("view", "compiled", "cluster", "parallel"), "dev": tuple(PROJECT["optional-dependencies"])}
PYTHONS = ("3.11", "3.12", "3.13")


def pinned(name: str) -> list[Requirement]:
    """The requirements in a lock, those of the lock that it includes before its own."""
    lines = (LOCKS / f"{name}.txt").read_text().splitlines()
    included = [line.split()[1].removesuffix(".txt") for line in lines if line.startswith("--requirement ")]
    own = [Requirement(line.removesuffix("\\")) for line in lines if line and line[0] not in " #-"]
    return [*(pin for other in included for pin in pinned(other)), *own]


def asked(name: str) -> list[Requirement]:
    """What must be in a lock: direct requirements. An extra that names another extra of ours asks for that one's."""
    if name in EXTRAS:
        extras = PROJECT["optional-dependencies"]
        lines = [*PROJECT["dependencies"], *(line for extra in EXTRAS[name] for line in extras[extra])]
    else:
        lines = [line for line in (LOCKS / f"{name}.in").read_text().splitlines() if not line.startswith("#")]
    return [wanted for line in lines if (wanted := Requirement(line)).name != PROJECT["name"]]


def missing(wanted: Requirement, there: list[Requirement], python: str) -> str | None:
    """Why a requirement is not met on this Python; None where it is."""
    environment = {"python_version": python, "python_full_version": f"{python}.1", "sys_platform": "linux"}
    if wanted.marker is not None and not wanted.marker.evaluate(environment):
        return None
    versions = [
        next(iter(pin.specifier)).version
        for pin in there
        if canonicalize_name(pin.name) == canonicalize_name(wanted.name)
        and (pin.marker is None or pin.marker.evaluate(environment))
    ]
    if len(versions) != 1:
        return f"{wanted} on Python {python}: {len(versions)} versions are locked"
    fits = wanted.specifier.contains(versions[0], prereleases=True)
    return None if fits else f"{wanted}: {versions[0]} is locked"


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", ["uv", "build", "user", "dev", "shell", "mcp"])
def test_each_lock_meets_what_is_asked_for(name: str, python: str) -> None:
    there = pinned(name)
    assert [why for wanted in asked(name) if (why := missing(wanted, there, python))] == [], "run locks/renew.sh"


@pytest.mark.parametrize("name", ["uv", "build", "user", "dev", "shell", "mcp"])
def test_every_package_is_pinned_to_one_version_and_has_digests(name: str) -> None:
    text = (LOCKS / f"{name}.txt").read_text()
    blocks = re.findall(r"^[a-z0-9][^\n]*(?:\n +[^\n]*)*", text, re.MULTILINE)
    assert blocks
    for block in blocks:
        assert "==" in block.splitlines()[0], block
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block


def test_users_get_the_versions_that_developers_test() -> None:
    """The developers' lock includes the users' one, and has no second version of anything in it."""
    assert "--requirement user.txt" in (LOCKS / "dev.txt").read_text()
    names = [canonicalize_name(pin.name) for pin in pinned("dev") if pin.marker is None]
    assert sorted(names) == sorted(set(names))


def test_the_lock_for_agents_is_that_of_the_extra_and_is_tested() -> None:
    package = tomllib.loads((ROOT / "packages" / "operations" / "pyproject.toml").read_text())["project"]
    assert [str(wanted) for wanted in asked("mcp")] == package["optional-dependencies"]["mcp"]
    mine, tested = ({f"{pin.name}{pin.specifier}" for pin in pinned(name)} for name in ("mcp", "dev"))
    assert mine <= tested


def test_no_lock_names_an_index_or_a_path() -> None:
    for path in LOCKS.glob("*.txt"):
        assert not re.search(r"https?://|file:|--(?:extra-)?index-url|--find-links", path.read_text()), path.name


def test_mininets_setuptools_has_no_published_flaws() -> None:
    """Versions below 78.1.1 have: CVE-2025-47273 (a path traversal) and CVE-2024-6345."""
    (pin,) = [pin for pin in pinned("user") if pin.name == "setuptools"]
    assert int(next(iter(pin.specifier)).version.split(".")[0]) >= 79


pytest.importorskip("hatchling")
pytest.importorskip("editables")
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
