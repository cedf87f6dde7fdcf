"""Links between switches flap, several times a minute and more, under a training loop."""

from collections.abc import Sequence

from judging import PaperRow, checks
from judging.checks import Check
from scenarios import places
from scenarios.scenario import Scenario, Setting, TimedFault, Workload, only_training, phases

FLAPS_PER_MINUTE = 13  # the most that the paper saw; 4.2 on average
FLAPS_MIN = 4
DOWN_S = (0.5, 2.0)


def workloads(setting: Setting) -> Sequence[Workload]:
    """ValueError on a fabric on which a link that is down is missed: then a flap costs what the link carried."""
    plan = setting.plan
    links = [places.in_plane(link, plane) for plane in range(plan.planes) for link in places.common_links(plan)]
    places.check_spare(plan, links, "link-flap")
    return only_training(setting)


def timeline(setting: Setting) -> list[TimedFault]:
    return flaps(setting, FLAPS_PER_MINUTE)


def flaps(setting: Setting, per_minute: float) -> list[TimedFault]:
    """Flaps of random links, each down for 0.5 s to 2 s, spread over the phase at random distances.

    The phase is cut into as many equal parts as there are flaps; each begins somewhere in the first half of its part.
    Their lengths are one from each part of the range, in random order, so that every seed has short and long flaps. The
    report can then tell what each did. Leaving a lost path costs two round trips and the lab's round trip is 10,000
    times the hardware's, so each flap here weighs as much as thousands there: more of them would measure the lab's
    slowness and not the transport.
    """
    plan, rng = setting.plan, setting.new_rng()
    count = max(FLAPS_MIN, round(per_minute * setting.phases["faults"] / 60))
    part_s = (setting.phases["faults"] - 4.0) / count
    lengths_s = [DOWN_S[0] + (DOWN_S[1] - DOWN_S[0]) * (part + rng.random()) / count for part in range(count)]
    rng.shuffle(lengths_s)
    faults: list[TimedFault] = []
    down_until_s: dict[str, float] = {}  # by the link without its plane: on the single plane those of all are one
    everywhere = places.common_links(plan)
    for part, down_s in enumerate(lengths_s):
        at_s = part_s * (part + rng.uniform(0.0, 0.5))
        up = [link for link in everywhere if down_until_s.get(link, 0.0) <= at_s]
        link, plane = rng.choice(up), rng.randrange(plan.planes)
        faults.append(TimedFault(at_s, "link-down", places.in_plane(link, plane), down_s))
        down_until_s[link] = at_s + down_s
    return faults


def judge(setting: Setting) -> Sequence[Check]:
    return checks_of(FLAPS_MIN)


def checks_of(flaps_min: int) -> Sequence[Check]:
    """The checks of a training loop under at least so many flaps."""
    return [
        *checks.always(),
        checks.reference_load(),
        checks.faults_happened(at_least=flaps_min),
        checks.faults_felt(),
        checks.fault_cost(),
        checks.drift(),
        checks.planes_even(0.05, phase="faults"),
    ]


SCENARIO = Scenario(
    name="link-flap",
    title="Training does not notice flapping links",
    description=(
        "Eight hosts run a synchronous training loop: compute, then a ring all-reduce whose sums are verified. "
        "Links between leaves and spines go down at random instants and come back half a second to two seconds "
        "later. No routing protocol reacts: hosts stop using the paths that lose packets, and probe them until "
        "they work again."
    ),
    plan="lab",
    workloads=workloads,
    timeline=timeline,
    checks=judge,
    phases=phases(warmup_s=3.0, reference_s=8.0, faults_s=24.0, heal_s=4.0),
    short=phases(warmup_s=1.5, reference_s=7.0, faults_s=11.0, heal_s=1.5),
    paper=(
        PaperRow("5", "T0–T1 flaps a minute during a very large job", "mean 4.2, up to 13: negligible impact"),
        PaperRow("9c", "20 T0–T1 links taken down, 1 s apart", "goodput 1533 → 1534 Gb/s, lowest sample 1520"),
        PaperRow("9d", "8 T0–T1 links down at 22 s, up at 52 s", "mean 1531 Gb/s, lowest 1472 at the failure"),
    ),
)
