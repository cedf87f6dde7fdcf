"""Links flap as often as in the paper's trace of 250 minutes, at instants drawn from that rate."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp, log
from random import Random

from judging import PaperRow
from judging.checks import Check
from scenarios import link_flap, places
from scenarios.scenario import Scenario, Setting, TimedFault, only_training, phases

MINUTES = 10
MINUTE_S = 60.0
PAPER_MINUTES = 250
FLAPS_PER_MINUTE = 4.2
"""In the whole fabric: the paper, figure 5. In its 250 minutes the lowest is 1, the highest 13."""
LASTS_S = (0.5, 60.0)
"""How long a flap lasts is assumed: from half a second to the minute in which most ports recover."""


def drawn(links: Sequence[str], seconds: float, rng: Random) -> list[TimedFault]:
    """Flaps of `links` within `seconds`: a Poisson process, each of a length whose logarithm is uniform.

    A link is not hit while it is down, and every flap is over when the time is: one that would last longer ends then.
    ValueError without links.
    """
    if not links:
        raise ValueError("link-down needs at least one target to draw from (got none)")
    low, high = (log(length_s) for length_s in LASTS_S)
    faults: list[TimedFault] = []
    down_until_s: dict[str, float] = {}
    at_s = rng.expovariate(FLAPS_PER_MINUTE / MINUTE_S)
    while at_s < seconds:
        lasts_s = min(exp(rng.uniform(low, high)), seconds - at_s)
        up = [link for link in links if down_until_s.get(link, 0.0) < at_s]
        if up and lasts_s > 0:
            link = rng.choice(up)
            down_until_s[link] = at_s + lasts_s
            faults.append(TimedFault(at_s, "link-down", link, lasts_s))
        at_s += rng.expovariate(FLAPS_PER_MINUTE / MINUTE_S)
    return faults


def timeline(setting: Setting) -> list[TimedFault]:
    """Flaps of links between switches, at the rate of the paper's whole fabric.

    A link is known by its name without the plane, so that no link of the single plane flaps twice at once.
    """
    plan, rng = setting.plan, setting.new_rng()
    flaps = drawn(places.common_links(plan), setting.phases["faults"], rng)
    return [replace(flap, target=places.in_plane(flap.target, rng.randrange(plan.planes))) for flap in flaps]


def judge(setting: Setting) -> Sequence[Check]:
    return link_flap.checks_of(int(setting.phases["faults"] // MINUTE_S))


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
    return replace(_TEN_MINUTES, phases=phases(reference_s=20.0, faults_s=MINUTE_S * minutes))


SCENARIO = replace(_TEN_MINUTES, forms={"hours": lasting(PAPER_MINUTES)})
