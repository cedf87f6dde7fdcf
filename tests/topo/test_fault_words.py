"""`fault --format json`: verbs, targets and numbers with their units, in text that another program can read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cli.commands.lab import fault_json
from topo.emulation.lab import Lab
from topo.fault import VERBS, Fault
from topo.planfile import load_plan

PROJECT = Path(__file__).parents[2]


@pytest.mark.parametrize("verb", VERBS)
def test_a_fault_says_its_number_with_the_unit_and_whether_it_lasts(verb: str) -> None:
    argument = VERBS[verb].argument
    fault = Fault(verb, "p0l0-p0s0", None if argument is None else argument.low)
    told = json.loads(json.dumps(fault_json(fault)))
    assert (told["verb"], told["target"], told["lasting"]) == (verb, "p0l0-p0s0", VERBS[verb].lasting)
    assert (told.get("value"), told.get("unit")) == (
        (None, None) if argument is None else (argument.low, argument.name)
    )


def words(*line: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "cli", *line]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, cwd=PROJECT)


@pytest.mark.root
def test_faults_injected_and_in_force_are_json_and_nothing_else_is_printed(private_run: None) -> None:
    lab = Lab.up(load_plan("tiny", {"switch": "linux"}))
    try:
        assert json.loads(words("fault", "--format", "json").stdout) == []
        made = words("fault", "loss", "p0l0>p0s0", "20", "--format", "json")
        assert made.stderr == ""
        loss = {"verb": "loss", "target": "p0l0>p0s0", "value": 20.0, "unit": "percent", "lasting": True}
        assert json.loads(made.stdout) == loss
        down = {"verb": "link-down", "target": "p1l0-p1s1", "lasting": True}
        assert json.loads(words("fault", "link-down", "p1l0", "p1s1", "--format", "json").stdout) == down
        assert json.loads(words("fault", "--format", "json").stdout) == [loss, down]
        refused = words("fault", "loss", "p0l0>p0s0", "200", "--format", "json")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "percent" in refused.stderr
    finally:
        lab.down()
