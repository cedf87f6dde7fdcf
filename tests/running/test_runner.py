"""The runner by itself: how long it waits, and when switches change their routes."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from cli.main import parser
from judging import checks
from running.directory import RunDirectory
from running.options import Choices
from running.runner import Runner
from running.spec import RunSpec
from running.transport_choice import transport
from running.worlds.simulated import SimulatedWorld
from scenarios.scenario import Phase, Scenario, TimedFault, Workload
from tests.helpers.chosen import chosen
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


DEAD = {("p0l0", "p0s0")}


def rerouted(tmp_path: Path, words: list[str], lasts_s: float) -> list[tuple[float, set[tuple[str, str]]]]:
    """When a run with a link down from 1 s on changed its routes, and the links that these leave out."""
    spec = chosen(["smoke", "--transport", "roce", "--world", "simulated", "--seed", "1", *words])
    cut = TimedFault(1.0, "link-down", "p0l0-p0s0", for_s=lasts_s, phase="run")
    scenario = replace(
        STREAM,
        until_done=lasts_s > 1,
        phases=(Phase("run", 2 + lasts_s),),
        workloads=lambda setting: [Workload("permutation", {"messages": 100 if lasts_s > 1 else 1}, phase="run")],
        timeline=lambda setting: [cut],
    )
    directory = RunDirectory.create(tmp_path, "own", 1)
    made: list[tuple[float, set[tuple[str, str]]]] = []

    class Listed(SimulatedWorld):
        def reconverge(self, dead_links: Collection[tuple[str, str]]) -> None:
            made.append((round(self.now_ns() / 1e9, 3), set(dead_links)))
            super().reconverge(dead_links)

        def verify(self) -> int:
            assert super().verify() == 0
            return 0

    def make() -> SimulatedWorld:
        return Listed(spec.choices.running_plan, spec.choices.transport, 1, directory, lambda text: None)

    Runner(RunSpec(scenario, spec.choices), directory, tell=lambda text: None).run(make)
    return made


@pytest.mark.parametrize(
    ("words", "after_s"),
    [
        ([], 0.1),
        (["--reconvergence", "0"], 0.0),
        (["--reconvergence", "0.5"], 0.5),
        (["--reconvergence", "never"], None),
    ],
)
def test_switches_leave_a_dead_link_out_so_long_after_it_fails_and_take_it_back_so_long_after_it_returns(
    words: list[str], after_s: float | None, tmp_path: Path
) -> None:
    expected = [] if after_s is None else [(1 + after_s, DEAD), (2 + after_s, set())]
    assert rerouted(tmp_path, words, 1.0) == expected


@pytest.mark.parametrize("given", ["-1", "-0.5", "nan", "soon"])
def test_a_time_before_the_failure_is_refused(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    """-1 was taken for the default, whose place it holds."""
    with pytest.raises(SystemExit, match="2"):
        parser("run").parse_args(["run", "smoke", "--transport", "roce", f"--reconvergence={given}"])
    assert f"must be a number of seconds from 0 on, or 'never' (got '{given}')" in capsys.readouterr().err


def test_a_run_that_ends_while_a_link_is_dead_has_the_planned_tables_in_the_end(tmp_path: Path) -> None:
    (first, last) = rerouted(tmp_path, [], 9.0)
    assert first == (1.1, DEAD)
    assert last[0] < 9
    assert last[1] == set()
