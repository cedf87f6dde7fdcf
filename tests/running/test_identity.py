"""What a run is: its digests, and its key, which covers every file that the run reads or executes."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import controller.pipelines
from common import user_code
from judging.reports import comparison
from judging.run import Run
from running import identity
from running.directory import find
from running.options import Choices
from running.spec import RunSpec
from running.transport_choice import transport
from scenarios import ddp, library
from scenarios.scenario import Command
from scenarios.user_traffic.command import with_command
from tests.running.traced_run import ROOT, loaded, write_hook
from topo.planfile import load_plan

PROGRAMS = Path(controller.pipelines.PROGRAMS)
HASHES = {"program": "aa", "scenario": "bb", "plan": "cc", "transport": "dd", "switch": "ee", "lab": "ff"}


def options(scenario: str = "smoke", **changes: Any) -> dict[str, Any]:
    chosen: dict[str, Any] = {"transport": transport("mrc"), "plan": load_plan("tiny"), "seed": 1, **changes}
    return RunSpec(library.find(scenario), Choices(**chosen)).options()


def test_the_same_choices_have_the_same_key() -> None:
    assert options()["key"] == options()["key"] == identity.key(options())
    # What a run is does not depend on what is stored with it besides.
    assert identity.key({**options(), "cpus": 64, "python": "3.99"}) == options()["key"]
    assert identity.key(json.loads(json.dumps(options()))) == options()["key"]


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 2},
        {"plan": load_plan("tiny", {"trimming.enabled": "false"})},
        {"plan": load_plan("tiny").at_rate(5_000_000)},
        {"transport": transport("roce")},
        {"world": "simulated"},
        {"time_factor": 0.5},
        {"scenario": "link-flap"},
    ],
    ids=str,
)
def test_another_choice_is_another_run(changes: dict[str, Any]) -> None:
    assert options(**changes)["key"] != options()["key"]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "p4"
    shutil.copytree(PROGRAMS, folder)
    monkeypatch.setattr(controller.pipelines, "PROGRAMS", folder)
    return folder


def test_an_edited_p4_program_is_another_and_a_copy_or_a_comment_is_not(programs: Path) -> None:
    before = options()
    route = programs / "parts" / "route.p4"
    route.write_text("// a comment\n" + route.read_text())
    leaf = programs / "leaf.p4"
    leaf.write_text(leaf.read_text() + "\n// another\n")
    assert options()["hashes"]["program"] == before["hashes"]["program"]
    route.write_text(route.read_text().replace("hop_limit - 1", "hop_limit - 2"))
    after = options()
    assert {name for name in HASHES if after["hashes"][name] != before["hashes"][name]} == {"program"}
    assert after["key"] != before["key"]


def test_a_scenario_of_ones_own_is_known_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    shutil.copy(library.file_of("smoke") or "", file)
    first = options(source=str(file))
    file.write_text(file.read_text().replace("4.5", "4.6"))
    second = options(source=str(file))
    assert {name for name in HASHES if first["hashes"][name] != second["hashes"][name]} == {"scenario"}


def test_an_algorithm_of_ones_own_is_known_by_its_file_and_the_modules_that_it_imports(tmp_path, monkeypatch) -> None:
    """Rows of a sweep that were made with an older helper must not be shown as those of this one."""
    library = tmp_path / "library"
    texts = {
        "mine/first.py": "import random\nimport helper, missing\nfrom package.part import thing\nimport far.off\n",
        "mine/helper.py": "import first\nfrom endpoint.mrc.paths.selection import Selection\n",
        "mine/random.py": "the standard library's comes first",
        "mine/package/__init__.py": "def f():\n    from . import deep\n",
        "mine/package/part.py": "import helper\nx = (",
        "mine/package/deep.py": "from .. import helper",
        "mine/package/unused.py": "",
        "library/far/off.py": "import numpy, first",
        "library/first.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", f"{library}{os.pathsep}{identity.ROOT}")

    def hashes() -> dict[str, str]:
        settings = {"selection": f"{tmp_path}/mine/first.py:Mine"}
        return identity.hashes("smoke", load_plan("tiny"), settings)

    before = hashes()
    changing = []
    for name, text in texts.items():
        (tmp_path / name).write_text(text + "\n# edited\n")
        changing += [name] if hashes() != before else []
        assert {one for one in HASHES if hashes()[one] != before[one]} <= {"transport"}
        (tmp_path / name).write_text(text)
    assert changing == [
        "mine/first.py", "mine/helper.py", "mine/package/__init__.py", "mine/package/part.py",
        "mine/package/deep.py", "library/far/off.py", "library/first.py",
    ]  # fmt: skip


def said(made_up: Callable[..., Run], first: dict[str, Any], second: dict[str, Any]) -> tuple[bool | None, str]:
    finding = comparison.findings_between([made_up(changed=first), made_up(changed=second)])[0]
    return finding.holds, finding.reason


@pytest.mark.parametrize(
    ("second", "holds", "words"),
    [
        ({"hashes": {**HASHES, "program": "zz"}}, True, "but for the P4 program, aa against zz"),
        ({"hashes": {**HASHES, "plan": "zz"}}, True, "but for the plan's file, cc against zz"),
        ({"hashes": {**HASHES, "transport": "zz"}}, True, "but for the transport's code, dd against zz"),
        ({"hashes": {**HASHES, "switch": "zz"}}, True, "but for the switch's code"),
        ({"hashes": {**HASHES, "lab": "zz"}}, True, "but for the lab's code"),
        ({"hashes": {**HASHES, "scenario": "zz"}}, None, "not the same: the scenario's file"),
        ({"hashes": {**HASHES, "program": "yy", "switch": "zz"}}, None, "the P4 program and the switch's code"),
        ({"hashes": HASHES, "version": "2"}, None, "not the same: the version of mrclab (not recorded and 2)"),
        ({}, None, "only one of them recorded its P4 program, scenario and code"),
    ],
)
def test_a_comparison_names_what_was_edited_and_nothing_follows_if_that_is_more(made_up, second, holds, words) -> None:
    found, reason = said(made_up, {"hashes": HASHES}, second)
    assert found is holds
    assert words in reason


def test_the_digest_of_a_plan_does_not_count_twice_what_set_changed(made_up: Callable[..., Run]) -> None:
    second = {"hashes": {**HASHES, "plan": "zz"}, "overrides": {"trimming.enabled": "false"}}
    holds, reason = said(made_up, {"hashes": HASHES}, second)
    assert holds is True
    assert reason.endswith("but for keys of the plan, trimming.enabled the default against false")


def test_compare_refuses_to_lay_a_run_beside_itself(tmp_path: Path, refused) -> None:
    for name in ("smoke/20261101-1", "smoke/20261103-1"):
        (tmp_path / name / "journal").mkdir(parents=True)
        (tmp_path / name / "options.json").write_text("{}")
    (tmp_path / "latest").symlink_to("smoke/20261103-1")
    assert find(tmp_path, "smoke").name == "20261103-1"
    error = refused("compare", "smoke", "--runs", str(tmp_path))
    assert "smoke/20261103-1 would be compared with itself: name two runs" in error
    assert "others of smoke: smoke/20261101-1" in error


def test_every_place_whose_code_counts_is_there_and_no_file_has_two() -> None:
    for places in identity.CODE.values():
        for place in places:
            assert list(identity.sources((place,))), place
    # running/worlds was in the key twice.
    listed = [path for places in identity.CODE.values() for path in identity.sources(places)]
    assert len(listed) == len(set(listed))


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
def test_an_edited_file_changes_the_keys_of_the_runs_that_load_it(clone: Path, edited, changes, stays) -> None:
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
