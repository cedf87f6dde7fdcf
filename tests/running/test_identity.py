"""What a run is: what changes its digests and its key, and what a comparison says of it."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import controller.pipelines
from cli import main as cli
from judging.reports import comparison
from judging.run import Run
from running import identity
from running.directory import find
from running.options import Choices
from running.spec import RunSpec
from running.transport_choice import transport
from scenarios import library
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


def test_an_algorithm_of_ones_own_is_known_by_its_file_and_the_modules_that_it_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    ("name", "words"),
    [
        ("program", "but for the P4 program, aa against zz"),
        ("plan", "but for the plan's file, cc against zz"),
        ("transport", "but for the transport's code, dd against zz"),
        ("switch", "but for the switch's code"),
        ("lab", "but for the lab's code"),
    ],
)
def test_a_comparison_names_what_was_edited(made_up: Callable[..., Run], name: str, words: str) -> None:
    holds, reason = said(made_up, {"hashes": HASHES}, {"hashes": {**HASHES, name: "zz"}})
    assert holds is True
    assert words in reason


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ({"hashes": {**HASHES, "scenario": "zz"}}, "not the same: the scenario's file"),
        ({"hashes": {**HASHES, "program": "yy", "switch": "zz"}}, "the P4 program and the switch's code"),
        ({"hashes": HASHES, "version": "2"}, "not the same: the version of mrclab (not recorded and 2)"),
        ({}, "only one of them recorded its P4 program, scenario and code"),
    ],
)
def test_nothing_follows_from_what_is_edited_in_more_than_one_place(
    made_up: Callable[..., Run], second: dict[str, Any], words: str
) -> None:
    holds, reason = said(made_up, {"hashes": HASHES}, second)
    assert holds is None
    assert words in reason


def test_the_digest_of_a_plan_does_not_count_twice_what_set_changed(made_up: Callable[..., Run]) -> None:
    second = {"hashes": {**HASHES, "plan": "zz"}, "overrides": {"trimming.enabled": "false"}}
    holds, reason = said(made_up, {"hashes": HASHES}, second)
    assert holds is True
    assert reason.endswith("but for keys of the plan, trimming.enabled the default against false")


def test_compare_refuses_to_lay_a_run_beside_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("smoke/20261101-1", "smoke/20261103-1"):
        (tmp_path / name / "journal").mkdir(parents=True)
        (tmp_path / name / "options.json").write_text("{}")
    (tmp_path / "latest").symlink_to("smoke/20261103-1")
    assert find(tmp_path, "smoke").name == "20261103-1"
    assert cli.main(["compare", "smoke", "--runs", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "smoke/20261103-1 would be compared with itself: name two runs" in error
    assert "others of smoke: smoke/20261101-1" in error


def test_every_place_whose_code_counts_is_there_and_holds_some() -> None:
    for places in identity.CODE.values():
        for place in places:
            assert list(identity.sources((place,))), place
