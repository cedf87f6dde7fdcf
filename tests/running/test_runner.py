"""The runner by itself: how long it waits."""

from pathlib import Path

import pytest

from judging import checks
from running.choices import Choices
from running.directory import RunDirectory
from running.runner import Runner
from running.spec import RunSpec
from running.transport_choice import transport
from running.worlds.simulated import SimulatedWorld
from scenarios.scenario import Phase, Scenario, Workload
from topo.planfile import load_plan

STREAM = Scenario(
    name="own", title="own", description="", plan="tiny", until_done=True, phases=(Phase("run", 50.0),),
    workloads=lambda setting: [Workload("permutation", {"messages": 1}, phase="run")],
    checks=lambda setting: [checks.bytes_right()],
)  # fmt: skip


@pytest.mark.parametrize("world", ["simulated", "emulated"])
def test_a_run_that_ends_with_its_workloads_ends_soon_however_slow_its_links_are(world: str, tmp_path: Path) -> None:
    """Ports of 10 Mb/s that stand for 100 Gb/s make a second of lab time 10,000 long."""
    directory = RunDirectory.create(tmp_path, "own", 1)
    choices = Choices(transport("mrc"), load_plan("tiny"), seed=1, world=world)
    ended: list[float] = []

    class Timed(SimulatedWorld):
        def close(self) -> None:
            ended.append(self.now_ns() / 1e9)
            super().close()

    def make() -> SimulatedWorld:
        return Timed(load_plan("tiny"), transport("mrc"), 1, directory, lambda text: None)

    Runner(RunSpec(STREAM, choices), directory, tell=lambda text: None).run(make)
    assert 0 < ended[0] < 5
