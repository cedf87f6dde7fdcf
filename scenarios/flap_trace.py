"""Links flap as often as in the paper's trace of 250 minutes, at instants drawn from that rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from judging import PaperRow, checks
from judging.checks import Check
from scenarios import failures, places
from scenarios.scenario import Scenario, Setting, TimedFault, phases
from scenarios.training import only_training

MINUTES = 10
PAPER_MINUTES = 250


def timeline(setting: Setting) -> list[TimedFault]:
    """Flaps of links between switches, at the rate of the paper's whole fabric.

    A link is known by its name without the plane, so that no link of the single plane flaps twice at once.
    """
    plan, rng = setting.plan, setting.new_rng()
    flaps = failures.drawn(failures.LINK_FLAPS, "link-down", places.common_links(plan), setting.phases["faults"], rng)
    return [replace(flap, target=places.in_plane(flap.target, rng.randrange(plan.planes))) for flap in flaps]


def judge(setting: Setting) -> Sequence[Check]:
    return [
        *checks.always(),
        checks.reference_load(),
        checks.faults_happened(at_least=int(setting.phases["faults"] // failures.MINUTE_S)),
        checks.faults_felt(),
        checks.fault_cost(),
        checks.drift(),
        checks.planes_even(0.05, phase="faults"),
    ]


_TEN_MINUTES = Scenario(
    name="flap-trace",
    title="Training does not notice hours of flapping links",
    description=(
        "The training loop of link-flap, while links flap as often as the paper's figure 5 shows: 4.2 times per minute "
        "in the whole fabric, at random instants, for half a second to a minute each. The paper's fabric has some "
        "hundred thousand links and this one has 64, so that each queue pair meets thousands of times as many flaps. "
        "Ten minutes here; flap-trace@hours has the paper's 250."
    ),
    plan="lab",
    workloads=only_training,
    timeline=timeline,
    checks=judge,
    phases=phases(reference_s=20.0, faults_s=60.0 * MINUTES),
    paper=(PaperRow("5", "T0–T1 flaps per minute, over 250 minutes", "mean 4.2, from 1 to 13: negligible impact"),),
)


def lasting(minutes: float) -> Scenario:
    """The same for so many minutes, which draws more flaps; `--time` would stretch those there are."""
    return replace(_TEN_MINUTES, phases=phases(reference_s=20.0, faults_s=failures.MINUTE_S * minutes))


SCENARIO = replace(_TEN_MINUTES, forms={"hours": lasting(PAPER_MINUTES)})
