"""What was done by hand, as a scenario: the file runs, and does the same at the same times."""

import json
from pathlib import Path

import pytest

from judging.run import Run
from page.live import written
from page.played import played
from scenarios import library
from scenarios.scenario import Setting
from topo.planfile import load_plan

SECOND = 1_000_000_000


def run_with(*faults: tuple[float, str, str, str, str], phases: bool = True, **options: object) -> Run:
    """(seconds, node, verb, target, state) each."""
    lines = [{"t_ns": 0, "node": "runner", "kind": "options", **options}]
    marks = [(1.0, "warmup", "start"), (2.0, "warmup", "stop"), (2.0, "faults", "start"), (20.0, "faults", "stop")]
    for t_s, name, state in marks if phases else []:
        lines.append({"t_ns": round(t_s * SECOND), "node": "runner", "kind": "phase", "name": name, "state": state})
    for t_s, node, verb, target, state in faults:
        value = {"value": 20} if verb == "loss" else {}
        fields = {"verb": verb, "target": target, "state": state, "arguments": value}
        lines.append({"t_ns": round(t_s * SECOND), "node": node, "kind": "fault", **fields})
    lines.append({"t_ns": 20 * SECOND, "node": "h0", "kind": "step"})
    return Run(sorted(lines, key=lambda line: int(str(line["t_ns"]))))


def test_the_file_holds_every_fault_at_its_time(tmp_path: Path) -> None:
    run = run_with(
        (3.5, "lab", "loss", "p0l0-p0s0", "begin"),
        (5.0, "lab", "loss", "p0l0-p0s0", "end"),
        (6.0, "runner", "link-down", "p1l0-p1s0", "begin"),
        (6.5, "runner", "link-down", "p1l0-p1s0", "end"),
        (7.25, "lab", "switch-reboot", "p1s1", "begin"),
        (7.25, "lab", "switch-reboot", "p1s1", "end"),
        (9.0, "lab", "drain", "p0s1", "begin"),
        scenario="smoke", plan="tiny", transport="mrc", seed=4,
    )  # fmt: skip
    path = tmp_path / "mine.py"
    path.write_text(played(run, path))
    scenario = library.find(str(path))
    faults = [(f.at_s, f.verb, f.target, f.for_s, f.value, f.phase) for f in scenario.timeline(SETTING)]
    assert faults == [
        (1.5, "loss", "p0l0-p0s0", 1.5, 20, "faults"),
        (4.0, "link-down", "p1l0-p1s0", 0.5, None, "faults"),
        (5.25, "switch-reboot", "p1s1", None, None, "faults"),
        (7.0, "drain", "p0s1", None, None, "faults"),
    ]
    assert scenario.plan == "tiny"
    assert scenario.checks(SETTING)


SETTING = Setting(load_plan("tiny"), "mrc", 4, {"faults": 18.0})


def test_a_lab_without_a_scenario_gets_phases_that_hold_everything(tmp_path: Path) -> None:
    run = run_with(
        (4.0, "lab", "link-down", "p0l0-p0s0", "begin"),
        (9.5, "lab", "link-down", "p0l0-p0s0", "end"),
        phases=False,
        plan="tiny",
    )
    path = tmp_path / "mine.py"
    path.write_text(played(run, path))
    scenario = library.find(str(path))
    (fault,) = scenario.timeline(SETTING)
    assert (fault.at_s, fault.for_s) == (1.0, 5.5)
    assert {phase.name: phase.seconds for phase in scenario.phases}["faults"] == 12


def test_where_nothing_was_done_there_is_nothing_to_write() -> None:
    run = run_with((6.0, "runner", "link-down", "p1l0-p1s0", "begin"), scenario="smoke")
    with pytest.raises(ValueError, match="nothing was done by hand"):
        played(run, Path("x.py"))


def test_a_played_file_never_replaces_one_that_was_edited_nor_follows_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [
        {"t_ns": 0, "node": "runner", "kind": "options", "plan": "tiny"},
        {"t_ns": SECOND, "node": "lab", "kind": "fault", "verb": "drain", "target": "p0s1", "state": "begin"},
        {"t_ns": 2 * SECOND, "node": "h0", "kind": "step"},
    ]
    (tmp_path / "run/journal").mkdir(parents=True)
    (tmp_path / "run/journal/all.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    file = tmp_path / "played.py"
    file.write_text("# checks that a user has filled in\n")
    (tmp_path / "played-2.py").symlink_to("elsewhere")
    handed: list[Path] = []
    said = written(tmp_path / "run", file, handed.append)
    assert said["file"] == "played-3.py"
    assert handed == [tmp_path / "played-3.py"]
    assert library.find("./played-3.py").plan == "tiny"
    assert file.read_text() == "# checks that a user has filled in\n"
    assert not (tmp_path / "elsewhere").exists()


def test_where_nothing_was_done_no_file_is_left(tmp_path: Path) -> None:
    lines = [{"t_ns": 0, "node": "runner", "kind": "options", "plan": "tiny"}]
    (tmp_path / "run/journal").mkdir(parents=True)
    (tmp_path / "run/journal/all.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(ValueError, match="nothing was done by hand"):
        written(tmp_path / "run", tmp_path / "played.py", lambda path: None)
    assert not (tmp_path / "played.py").exists()
