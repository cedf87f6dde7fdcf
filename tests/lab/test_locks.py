"""The locks of `locks/` hold what pyproject.toml asks for, every file of it by its digest."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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
