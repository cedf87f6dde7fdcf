"""Runs on each topology in virtual time: the verdict, and the report, the replay and the trace of the same run."""

import json
from pathlib import Path

import pytest

from cli import main as cli
from running.directory import find
from tests.topo.topologies.shapes import TEXTS

pytestmark = pytest.mark.slow

RUNS = [
    ("switch-reboot", "pods", "true"),
    ("switch-reboot@spine", "pods", "true"),
    ("switch-reboot@core", "pods", "true"),
    ("switch-reboot@leaf", "pods", "true"),
    ("nic-port", "pods", "true"),
    ("maintenance", "pods", "true"),
    ("grey-link", "pods", "true"),
    ("collision", "rails", "true"),
    ("link-flap", "uneven", "true"),
    ("switch-reboot", "uneven", "true"),
    ("switch-reboot@leaf", "rails", "true"),
    ("collision", "uneven", "true"),
    ("nic-port", "list", "true"),
]
LONG = {"nic-port", "maintenance", "grey-link", "switch-reboot pods"}
"""Without a short form that has evidence enough: on two planes, or in two crashes of two tiers."""


@pytest.mark.parametrize(("scenario", "name", "verdict"), RUNS)
def test_a_run_has_its_verdict_and_can_be_shown(scenario: str, name: str, verdict: str, tmp_path, capsys) -> None:
    plan, runs = tmp_path / "own.toml", str(tmp_path / "runs")
    plan.write_text(TEXTS[name], encoding="utf-8")
    words = ["run", scenario, "--plan", str(plan), "--world", "simulated", "--payload", "counted", "--seed", "7"]
    cli.main([*words, *([] if {scenario, f"{scenario} {name}"} & LONG else ["--short"]), "--plain", "--runs", runs])
    assert f": {verdict}\n" in capsys.readouterr().out
    folder = find(Path(runs), "latest")
    replay, trace = tmp_path / "replay.html", tmp_path / "trace.json"
    assert cli.main(["view", str(folder), "--export", str(replay), "--runs", runs]) == 0
    assert replay.stat().st_size > 10_000
    assert cli.main(["export", "perfetto", str(folder), "-o", str(trace), "--runs", runs]) == 0
    assert json.loads(trace.read_text())["traceEvents"]
    assert cli.main(["report", str(folder), "--runs", runs]) in (0, 1)
