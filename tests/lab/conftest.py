"""Machines that lack things."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.bare_machine import APT, PLAIN, PYTHON, ROOT, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Fakes that wait for a file say `sleep 0.01 || exit`, so that none outlives a test that fails."""
    (tmp_path / "bin").mkdir()
    (tmp_path.parent / "answers").mkdir(exist_ok=True)
    for name in PLAIN:
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    bare = Machine(tmp_path)
    bare.fake("python3", PYTHON)
    bare.fake("apt-get", APT)
    bare.fake("id", "#!/bin/sh\necho 0\n")
    yield bare
    (tmp_path / "bin" / "sleep").unlink()


@pytest.fixture
def clone(machine: Machine) -> Machine:
    """The machine with a checkout to itself, whose locks may change."""
    folder = machine.folder / "clone"
    shutil.copytree(ROOT / "locks", folder / "locks")
    for name in ("lab", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    return replace(machine, checkout=folder)
