"""The contracts of imports in pyproject.toml, which `./lab test` checks: each is broken by a planted import."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.helpers.tracked import rooms

ROOT = Path(__file__).parents[1]
LINT = str(Path(sys.executable).with_name("lint-imports"))
PLANTED = (
    ("Imports point one way", {"topo/bad.py": "import switch.engine"}),
    ("Imports point one way", {"schedules/bad.py": "import endpoint.profile"}),
    ("The endpoint's agent drives", {"endpoint/mrc/bad.py": "import endpoint.packet_sockets.driver"}),
    ("Judging reads a run", {"judging/bad.py": "import running.runner"}),
    ("The clock and the wire are arguments", {"endpoint/mrc/bad.py": "import time"}),
    ("A switch's engines take the clock", {"switch/reference/bad.py": "import socket"}),
    ("Mininet in one place", {"topo/bad.py": "import mininet.net"}),
    ("gRPC in two places", {"topo/bad.py": "import grpc"}),
    ("Sockets in few places", {"topo/bad.py": "import socket"}),
    ("The lab imports no package", {"topo/bad.py": "import course.worker"}),
    ("No circles", {"topo/bad.py": "import topo.worse", "topo/worse.py": "import topo.bad"}),
)


def contracts() -> list[str]:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return [contract["name"] for contract in listed]


def test_each_contract_has_a_planted_import() -> None:
    assert not [contract for contract in contracts() if not any(contract.startswith(name) for name, _ in PLANTED)]


def linted(planted: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    for room in (*rooms(), ROOT / "packages" / "benchmarks" / "benchmarks"):
        shutil.copytree(room, folder / room.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for path, text in planted.items():
        (folder / path).write_text(text)
    return subprocess.run([LINT, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False)


def test_an_import_upwards_or_sideways_is_found_in_each_room(tmp_path: Path) -> None:
    (layers, *_) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    there = [room for floor in layers["layers"] for room in floor.split(" | ")]
    assert {room.name for room in rooms()} <= {*there, "p4"}
    above = {room: "benchmarks.noise" if room == "course" else "course.worker" for room in there}
    done = linted({f"{room}/bad.py": f"import {module}" for room, module in above.items()}, tmp_path)
    assert [room for room in there if f"{room}.bad -> {above[room]} (l.1)" not in done.stdout] == []


@pytest.mark.parametrize(("name", "planted"), PLANTED)
def test_a_planted_import_breaks_the_contract(name: str, planted: dict[str, str], tmp_path: Path) -> None:
    (contract,) = [contract for contract in contracts() if contract.startswith(name)]
    done = linted(planted, tmp_path)
    assert f"{contract} BROKEN" in " ".join(done.stdout.split())
    assert done.returncode == 1
