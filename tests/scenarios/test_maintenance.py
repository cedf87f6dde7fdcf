"""The check of a drained spine, over a made-up run whose hosts do, or do not, keep off it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from judging.run import Run
from scenarios import library, maintenance
from scenarios.scenario import Setting
from topo.planfile import load_plan

SECOND = 10**9
SETTING = Setting(
    load_plan("tiny"), "mrc", 7, {phase.name: phase.seconds for phase in library.find("maintenance").phases}
)


def with_drain(run: Run, hosts: tuple[str, ...], back_s: int = 18) -> Run:
    """p1s0 is drained from 12 s to 20 s; these hosts deny their paths across it until `back_s`."""
    lines = [line for line in run.lines if line["kind"] not in ("fault", "ev")]
    for host in {line["node"] for line in lines if "qps" in line}:
        for line in lines:
            if line["node"] == host and "qps" in line:
                line["qps"] = [{**qp, "peer": "h3" if host in ("h0", "h1") else "h0"} for qp in line["qps"]]
    for t_s, state in ((12, "begin"), (20, "end")):
        fault = {"verb": "drain", "target": "p1s0", "state": state, "arguments": {}}
        lines.append({"t_ns": t_s * SECOND, "node": "runner", "kind": "fault", **fault})
    path = {"qp": 1, "peer": "h3", "ev": 65536 + 49152, "plane": 1, "via": "p1s0"}
    for host in hosts:
        for t_s, old, new in ((12, "good", "denied"), (back_s, "denied", "good")):
            lines.append(
                {"t_ns": t_s * SECOND, "node": host, "kind": "ev", **path, "old": old, "new": new, "cause": ""}
            )
    return Run(sorted(lines, key=lambda line: int(line["t_ns"])))


@pytest.mark.parametrize(
    ("hosts", "back_s", "holds"),
    [
        (("h0", "h1", "h2", "h3"), 20, True),
        (("h0", "h1", "h3"), 20, False),
        (("h0", "h1", "h2", "h3"), 14, False),  # back on it long before it was
        ((), 20, False),
    ],
)
def test_every_host_must_keep_off_the_drained_spine(
    made_up: Callable[..., Run], hosts: tuple[str, ...], back_s: int, holds: bool
) -> None:
    finding = maintenance.drained(SETTING)(with_drain(made_up(), hosts, back_s))
    assert finding.holds is holds, finding.reason


def test_without_a_drain_nothing_is_known(made_up: Callable[..., Run]) -> None:
    assert maintenance.drained(SETTING)(made_up()).holds is None
