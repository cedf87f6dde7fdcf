"""Packages of the lab: in place (`./lab install`), as sources for any machine, or with all that needs a compiler built.

A wheel has the whole tree in one folder, `mrclab_lab`, since P4 programs, plans, C sources and scripts are used from
beside the Python code; `mrclab.pth` puts that folder on the path, so that no room is at the top of site-packages.
With MRCLAB_RELEASE, which `./lab release` sets, it also brings the runtime, the shipped P4 programs and the endpoint as
machine code, and is for one Python on x86-64 or the machine that builds it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TREE = "mrclab_lab"
PATHS = "mrclab.pth"
PACKAGES = ("algorithms", "course", "operations", "p4c", "paper", "scale", "answers", "fabric", "conform")
HELD = (
    "cli", "common", "controller", "endpoint", "judging", "libmrc", "mrclab", "p4", "page", "pyproject.toml", "running",
    "scenarios", "schedules", "studies", "switch", "topo", *(f"packages/{name}" for name in PACKAGES),
)  # fmt: skip


class Packages(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """RuntimeError where machine code is asked for and cannot be made."""
        if version == "editable" or self.target_name != "wheel":
            return
        made = Path(self.root) / "build" / "release"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        build_data["force_include"] |= {str(Path(self.root, place)): f"{TREE}/{place}" for place in HELD}
        folders = [TREE, *(f"{TREE}/packages/{name}" for name in PACKAGES)]
        (made / PATHS).write_text("".join(f"{folder}\n" for folder in folders))
        build_data["force_include"][str(made / PATHS)] = PATHS
        if os.environ.get("MRCLAB_RELEASE"):
            files = list(_ship(made / "shipped"))
            build_data["force_include"][str(made / "shipped")] = f"{TREE}/shipped"
            build_data["pure_python"] = False
            build_data["tag"] = _tag(files)


def _ship(folder: Path) -> Iterator[Path]:
    """Put the lab's machine code into a folder, under the names by which the lab looks for it there."""
    from common.compiled.build import build
    from common.compiled.unit import Build, record, record_path
    from controller.pipelines import compiled_pipelines
    from endpoint.compiled import UNIT
    from p4c.model import load_program
    from switch.native import build as native
    from switch.native.emit import emit

    folder.mkdir()
    key = UNIT.key()
    endpoint = build(UNIT, lambda words: print(words, file=sys.stderr))
    own = folder / f"{UNIT.name}.d"
    own.mkdir()
    copies = {module: _copy(Path(path), own / Path(path).name) for module, path in endpoint.files.items()}
    shipped = Build(str(own), endpoint.compilers, {module: str(path) for module, path in copies.items()})
    Path(record_path(UNIT, key, str(folder))).write_text(record(shipped))
    yield from copies.values()
    yield _copy(native.build_runtime(), folder / native.shipped("runtime").name)
    for pipeline in compiled_pipelines().values():
        program = load_program(pipeline.device_config)
        text = emit(program)
        built = native.build_program(text, program.name)
        yield _copy(built, folder / native.shipped(program.name, text).name)


def _copy(source: Path, target: Path) -> Path:
    """Without what differs from build to build, and without what only a debugger reads."""
    words = ["strip", "--strip-unneeded", "--remove-section=.comment", "--remove-section=.note.gnu.build-id"]
    subprocess.run([*words, "-o", str(target), str(source)], check=True)
    return target


def _tag(files: list[Path]) -> str:
    """Of this Python and machine, and the newest version of glibc that any of the files asks for (PEP 600)."""
    minor = 17
    for file in files:
        needs = subprocess.run(["readelf", "-V", str(file)], check=True, capture_output=True, text=True).stdout
        minor = max([minor, *map(int, re.findall(r"Name: GLIBC_2\.(\d+)", needs))])
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    machine = sysconfig.get_platform().rpartition("-")[2]
    return f"{python}-{python}-manylinux_2_{minor}_{machine}"
