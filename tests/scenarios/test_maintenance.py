"""The check of a drained spine, over a made-up run whose hosts do, or do not, keep off it."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from judging.run import Run
from scenarios import library, maintenance
from scenarios.scenario import Setting
from topo.planfile import load_plan

SECOND = 10**9
FIRST_EV = 65536 + 49152


@dataclass(frozen=True)
class Drain:
    """A drained spine. `peers` are those of h2 and h3, then of h0 and h1; `via` is of their first path in plane 1."""

    plan: str
    target: str
    peers: tuple[str, str]
    via: str

    @property
    def setting(self) -> Setting:
        lengths = {phase.name: phase.seconds for phase in library.find("maintenance").phases}
        return Setting(load_plan(self.plan), "mrc", 7, lengths)


TWO_TIERS = Drain("tiny", "p1s0", ("h0", "h3"), "p1s0")
DRAINS = {
    "two tiers": TWO_TIERS,
    "the spine that an EV of three tiers names": Drain("pods", "p1s0", ("h7", "h6"), "p1s0+p1c0"),
    "the spine of the other pod, which no EV names": Drain("pods", "p1s2", ("h7", "h6"), "p1s0+p1c0"),
}


def with_drain(run: Run, drain: Drain, hosts: tuple[str, ...], back_s: int = 18) -> Run:
    """The spine is drained from 12 s to 20 s; these hosts deny their first path in plane 1 until `back_s`."""
    lines = [line for line in run.lines if line["kind"] not in ("fault", "ev")]
    for host in {line["node"] for line in lines if "qps" in line}:
        for line in lines:
            if line["node"] == host and "qps" in line:
                line["qps"] = [{**qp, "peer": drain.peers[host in ("h0", "h1")]} for qp in line["qps"]]
    for t_s, state in ((12, "begin"), (20, "end")):
        fault = {"verb": "drain", "target": drain.target, "state": state, "arguments": {}}
        lines.append({"t_ns": t_s * SECOND, "node": "runner", "kind": "fault", **fault})
    path = {"qp": 1, "peer": drain.peers[1], "ev": FIRST_EV, "plane": 1, "via": drain.via}
    for host in hosts:
        for t_s, old, new in ((12, "good", "denied"), (back_s, "denied", "good")):
            lines.append(
                {"t_ns": t_s * SECOND, "node": host, "kind": "ev", **path, "old": old, "new": new, "cause": ""}
            )
    return Run(sorted(lines, key=lambda line: int(line["t_ns"])))


@pytest.mark.parametrize("drain", DRAINS.values(), ids=DRAINS)
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
    made_up: Callable[..., Run], drain: Drain, hosts: tuple[str, ...], back_s: int, holds: bool
) -> None:
    finding = maintenance.drained(drain.setting)(with_drain(made_up(), drain, hosts, back_s))
    assert finding.holds is holds, finding.reason


def test_without_a_drain_nothing_is_known(made_up: Callable[..., Run]) -> None:
    assert maintenance.drained(TWO_TIERS.setting)(made_up()).holds is None
