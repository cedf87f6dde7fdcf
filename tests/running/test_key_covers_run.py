"""A run's key covers every file that the run reads or executes: compared with what runs really load.

A key that leaves a file out takes an old run for a new one: a sweep would show rows of code that is gone.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common import user_code
from running import identity
from running.options import Choices
from running.spec import RunSpec
from running.transport_choice import transport
from scenarios import ddp, library
from scenarios.scenario import Command
from scenarios.user_traffic.command import with_command
from tests.running.traced_run import ROOT, loaded, write_hook
from topo.planfile import load_plan

ASIDE = {
    "p4": "the compiled pipelines have a digest of their own, `program`",
    "p4c/frontend/include": "the same",
    "topo/plans": "the plan as it was read has a digest of its own, `plan`",
    "judging": "judges the run when it is over; `test_the_key_covers_what_a_run_loads` holds it to that",
}
"""Files of which no digest is in the key, and why the key covers them nevertheless."""
NAMED = {"judging/checks.py check.<locals>.make", "judging/checks.py always"}
"""Functions of `judging` that a rehearsal calls to see that the checks can be made; it looks at no result."""


def spec_of(name: str) -> RunSpec:
    return RunSpec(library.find(name), Choices(transport("mrc"), load_plan("tiny"), 1, world="simulated"))


def covered(name: str) -> set[Path]:
    """The files below the clone whose bytes are in the key of a scenario's run."""
    file = library.file_of(name)
    assert file is not None
    found = {path for places in identity.CODE.values() for path in identity.sources(places)}
    found |= {file, *identity.imports(file)}
    if programs := spec_of(name).programs():
        found |= set(identity.sources(identity.PROGRAMS))
        found |= {path for one in programs for path in identity.program_files(one.argv)}
    return {path.relative_to(ROOT) for path in found if path.is_relative_to(ROOT)}


def is_aside(path: Path) -> bool:
    return any((ROOT / path).is_relative_to(identity.placed(place)) for place in ASIDE)


# --- by reading ---------------------------------------------------------------------------------------------------


def test_whatever_the_code_of_a_run_imports_is_code_of_a_run(tmp_path: Path) -> None:
    known = {path for places in identity.CODE.values() for path in identity.sources(places)}
    roots = sorted(identity.import_roots(), key=lambda root: len(root.parts), reverse=True)
    modules = [
        path.relative_to(next(root for root in roots if path.is_relative_to(root))).with_suffix("")
        for path in known
        if path.suffix == ".py"
    ]
    (tmp_path / "all.py").write_text("\n".join(f"import {'.'.join(module.parts)}" for module in modules))
    reached = set(user_code.imported(tmp_path / "all.py", [*map(identity.placed, ASIDE)], roots))
    assert len(reached & known) > 0.9 * len(modules)
    missing = {path.relative_to(ROOT) for path in reached - known if path.is_relative_to(ROOT)}
    # `library` and `choosing` load scenarios by name; what one of them imports has a digest of its own, `imports`.
    assert sorted(map(str, missing)) == []


def test_no_file_has_two_places_in_the_key() -> None:
    """running/worlds was in the key twice."""
    listed = [path for places in identity.CODE.values() for path in identity.sources(places)]
    assert len(listed) == len(set(listed))


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the code that decides runs, which may be edited."""
    aside = shutil.ignore_patterns("__pycache__", "README.md")
    rooms = {place.partition("/")[0] for places in identity.CODE.values() for place in places}
    for room in map(identity.placed, sorted(rooms | {"mrclab", "libmrc"})):
        shutil.copytree(room, tmp_path / room.relative_to(ROOT), ignore=aside)
    monkeypatch.setattr(identity, "ROOT", tmp_path)
    monkeypatch.setattr(library, "__file__", str(tmp_path / "scenarios" / "library.py"))
    monkeypatch.setattr(identity, "code_digest", identity.code_digest.__wrapped__)
    monkeypatch.setattr(ddp, "torch_python", lambda: sys.executable)
    monkeypatch.setattr(ddp, "SCRIPT", tmp_path / "mrclab" / "torch" / "examples" / "ddp.py")
    return tmp_path


@pytest.mark.parametrize(
    ("edited", "changes", "stays"),
    [
        ("mrclab/training/ring.py", {"job", "job-port", "ddp"}, {"smoke", "spray"}),
        ("mrclab/torch/examples/ddp.py", {"ddp"}, {"smoke"}),
        ("scenarios/link_flap.py", {"link-flap", "job", "job-port", "ddp"}, {"smoke", "spray", "switch-reboot"}),
        ("scenarios/places.py", {"spray", "link-flap", "flap-trace"}, {"smoke", "nic-port"}),
        ("judging/single_plane.py", {"smoke", "job"}, set()),
        ("judging/checks.py", set(), {"smoke", "job"}),
        ("libmrc/source/post.c", set(), {"smoke", "job"}),
        ("endpoint/mrc/README.md", set(), {"smoke"}),
        ("switch/native/runtime/fabric/order.h", {"smoke"}, set()),
    ],
)
def test_an_edited_file_changes_the_keys_of_the_runs_that_load_it(
    clone: Path, edited: str, changes: set[str], stays: set[str]
) -> None:
    """Rows of `./lab sweep job` were taken over from before an edit of the training program that they run."""
    before = {name: spec_of(name).options()["key"] for name in changes | stays}
    with (clone / edited).open("a") as file:
        file.write("\n")
    after = {name: spec_of(name).options()["key"] for name in changes | stays}
    assert {name for name in before if after[name] != before[name]} == changes


def commanded(text: str) -> str:
    """The key of a run whose traffic is a user's command."""
    spec = spec_of("smoke")
    scenario = with_command(spec.scenario, Command(text, ("h0", "h1")))
    return str(RunSpec(scenario, spec.choices).options()["key"])


@pytest.mark.parametrize(
    ("command", "edited"),
    [
        ("{0}/tool", "tool"),
        ("python {0}/script.py --size 3", "script.py"),
        ("python {0}/script.py", "helper.py"),
        ("python {0}/script.py", "mrclab/qp.py"),
        ("{0}/tool --config={0}/data", "data"),
        ("{0}/tool {0}/data", "data"),
        ("{0}/verbs", "libmrc/source/post.c"),
    ],
)
def test_a_users_program_is_known_by_the_files_that_its_words_name(clone: Path, command: str, edited: str) -> None:
    (clone / "tool").write_text("#!/bin/sh\n")
    (clone / "verbs").write_bytes(b"\x7fELF libibverbs.so.1")
    for name in ("tool", "verbs"):
        (clone / name).chmod(0o755)
    (clone / "script.py").write_text("import helper\n")
    (clone / "helper.py").write_text("import mrclab\n")
    (clone / "data").write_text("1")
    text = command.format(clone)
    before = commanded(text)
    assert commanded(text) == before
    with (clone / edited).open("a") as file:
        file.write("\n")
    assert commanded(text) != before


def test_a_users_scenario_is_known_by_the_modules_that_it_imports(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import helper\nfrom scenarios import link_flap\n")
    (tmp_path / "helper.py").write_text("")
    names = {path.name for path in identity.imports(tmp_path / "mine.py")}
    assert names == {"helper.py", "link_flap.py", "places.py"}


# --- by running ---------------------------------------------------------------------------------------------------


def traced(name: str, folder: Path) -> Path:
    write_hook(folder)
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "MRCLAB_COMPILED": "off"}
    plan = "rack" if name == "incast" else "tiny"  # two hosts are no incast
    factor = "0.4" if name in library.WITH_PROGRAMS else "0.1"
    command = [sys.executable, "-P", str(ROOT / "tests" / "running" / "traced_run.py"), str(folder), name, plan, factor]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=540)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", library.SHIPPED)
def test_the_key_covers_what_a_run_loads(name: str, tmp_path: Path) -> None:
    if name == "ddp":
        try:
            ddp.torch_python()
        except ddp.NoTorchError as error:
            pytest.skip(str(error))
    found = loaded(traced(name, tmp_path))
    assert Path("running/runner.py") in found, "the hook has seen nothing"
    if name == "job":
        assert Path("mrclab/training/ring.py") in found, "the hook has not seen the programs in hosts"
    assert sorted(map(str, (path for path in found - covered(name) if not is_aside(path)))) == []
    called = {line.partition("/judging/")[2] for line in (tmp_path / "called").read_text().splitlines()}
    assert {f"judging/{one}" for one in called} - NAMED - {"judging/single_plane.py on_single_plane_target"} == set()
