"""The scenario of a counterexample loads, whatever the hunts of studies call their checks."""

from __future__ import annotations

from pathlib import Path

from course.seams.hunt import judged_alone
from course.seams.trial import Course
from scenarios import library
from scenarios.scenario import TimedFault, Workload
from studies.hunting import found
from studies.hunting.attempt import AttemptOutcome


def test_the_scenario_of_a_counterexample_loads(tmp_path: Path) -> None:
    load = Workload("write_bw", {"size": 4096, "depth": 2, "qps": 1, "messages": 0}, ("h0", "h1"))
    fabric = {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 1}
    case = Course(1, fabric, (load,), (TimedFault(0.1, "blackhole", "p0l0-p0s0", 0.5),), seam="health")
    path = found.write(tmp_path, "counterexample", case, AttemptOutcome({"lost": "too many"}), 1, 3)
    path.write_text(judged_alone(path.read_text()))
    scenario = library.find(str(path))
    assert len(scenario.timeline(None)) == 1  # type: ignore[arg-type]
    assert len(scenario.checks(None)) == 2  # type: ignore[arg-type]
