"""The code that the docs ask a reader to write does what they say."""

import re
from pathlib import Path

import pytest

from benchmarks.rig.uverbs_rig import rig
from judging.run import Run
from running.directory import RunDirectory
from running.options import Choices
from running.runner import Runner
from running.spec import RunSpec
from running.transport_choice import TransportChoice, transport
from running.worlds.simulated import SimulatedWorld
from scenarios import library
from scenarios.scenario import Scenario
from topo.planfile import load_plan

ROOT = Path(__file__).resolve().parents[2]


def code(page: str, holding: str) -> str:
    """The one Python block of a page that holds these words."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    (found,) = [block for block in blocks if holding in block]
    return str(found)


def simulate(scenario: Scenario, chosen: TransportChoice, plan: str, folder: Path) -> Run:
    choices = Choices(chosen, load_plan(plan), seed=1, world="simulated", time_factor=0.4)
    directory = RunDirectory.create(folder, scenario.name, 1)
    runner = Runner(RunSpec(scenario, choices), directory, tell=lambda event: None)
    runner.run(lambda: SimulatedWorld(choices.running_plan, chosen, 1, directory, runner.tell))
    return Run.open(directory.path)


def test_the_scenario_of_the_guide_runs(tmp_path: Path) -> None:
    file = tmp_path / "my_cut.py"
    file.write_text(code("docs/guide.md", "SCENARIO = Scenario("))
    run = simulate(library.find(str(file)), transport("mrc"), "tiny", tmp_path)
    assert [fault.target for fault in run.faults] == ["p0l0-p0s0"]
    assert run.kind("step")


def test_the_path_selection_of_the_guide_runs(tmp_path: Path) -> None:
    file = tmp_path / "my_file.py"
    file.write_text(code("docs/guide.md", "class RoundRobin(Selection)"))
    chosen = TransportChoice("mine", "", "mrc", {"selection": f"{file}:RoundRobin"})
    run = simulate(library.find("smoke"), chosen, "tiny", tmp_path)
    assert run.kind("step")
    assert all(line["verified"] for line in run.kind("step"))


@pytest.mark.parametrize("holding", ["MRC has no RNR", "solicited_only=True"])
def test_the_programs_of_the_page_on_uverbs_run(holding: str) -> None:
    with rig() as made:
        exec(code("docs/uverbs.md", holding), dict(zip(("one", "other"), made.names, strict=True)))
