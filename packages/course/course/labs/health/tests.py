"""Lab 6: path health. When to leave a path, and when to come back."""

from __future__ import annotations

from collections import Counter
from random import Random

from common.seeds import Purpose, derive
from common.terminal.counted import counted
from course.exercise import Exercise, StudentWork, Test
from course.result import Gate, TestOutcome, judged
from course.seams.held import carries, part
from course.seams.hunt import CourseHunt
from course.seams.log import evenness
from course.seams.trial import Trial, TrialCase, once, uplink
from judging import Finding, Span
from judging.measures import goodput
from scenarios import TimedFault, Workload

LOST_DEAD, KEPT, USED_AGAIN, KEPT_LOSSY, LOST_GREY, RETURNS_GREY = 24, 0.8, 0.5, 0.8, 45, 4
LEAVES_LOSSY, SOUND_OUT = 5, 2
HUNT_KEPT, HUNT_KEPT_PLANE, HUNT_KEPT_LOSSY, HUNT_BACK = 0.55, 0.35, 0.92, 0.9
HUNT_LOST, HUNT_RELAPSE, HUNT_STRAY = {"blackhole": 16, "loss": 32}, 5, 10
"""Packets that one of four paths may lose by its first fault, by each further one, and without any. Of more paths each
has fewer packets under way."""
HUNT_LEAVES = 3  # times that paths may go out without a reason
TIMEOUT_LOST = 20
"""Packets lost at one instant by which a timeout is known: everything under way counts as lost then, on sound paths
as well. It comes when the ways back of acknowledgements, one for each plane, are dead at the same time; no class of
the sender's can prevent it."""
LOSSY_PERCENT, FLAPS = 2.5, 5
Shape = dict[str, int]
LOAD = (Workload("write_bw", {"size": 65_536, "depth": 24, "qps": 1, "messages": 0}, ("h0", "h1"), name="load0"),)
FAULT_S = 2.0


def fabric(seed: int) -> Shape:
    """Two planes of two or three spines."""
    return {
        "planes": 2,
        "leaves": 2,
        "spines": Random(derive(seed, Purpose.LESSON, "health fabric")).choice((2, 3)),
        "hosts_per_leaf": 1,
    }


def case(work: StudentWork, name: str, faults: tuple[TimedFault, ...]) -> TrialCase:
    number = work.rng(name).getrandbits(31)
    return TrialCase(
        number, fabric(work.seed), LOAD, faults, reference_s=0.6, faults_s=FAULT_S, after_s=2.0, seam="health"
    )


def share(done: Trial, span: Span) -> float:
    return goodput.over(done.run, span) / done.case.possible_bps


def paths(made: TrialCase) -> int:
    """The number of paths."""
    return made.fabric["planes"] * made.fabric["spines"]


def number_of(done: Trial, target: str) -> int:
    """The path across the uplink of a fault: plane by plane, spine by spine."""
    plane, spine = int(target[1]), int(target.rpartition("s")[2])
    return plane * done.case.fabric["spines"] + spine


def dead(work: StudentWork) -> tuple[Trial, int]:
    """One uplink swallows every packet for a while."""
    rng, shape = work.rng("dead link"), fabric(work.seed)
    target = uplink(rng, shape, rng.randrange(2))
    done = once(work, "dead", case(work, "dead", (TimedFault(0.1, "blackhole", target, 1.5),)))
    return done, number_of(done, target)


def leaves(work: StudentWork) -> TestOutcome:
    done, path = dead(work)
    lost = done.log.by_path("lost", done.phase("faults"))[path]
    gate = Gate("packets lost", lost, LOST_DEAD, at_most=True)
    left = [event for event in done.log.of("leave", done.phase("faults")) if event.path == path]
    told = f"path {path} went out {counted(len(left), 'time')}, and lost {counted(lost, 'packet')}"
    cause = "leave with the second loss in a row" if not left else "it came back before it was whole: wait for probes"
    return judged(f"path {path} swallows everything for 1.5 s: leave it", told, (gate,), done.look, cause)


def left(work: StudentWork) -> Gate:
    """A class that leaves no path shows nothing by keeping the others, and by coming back."""
    done, path = dead(work)
    times = done.log.by_path("leave", done.phase("faults"))[path]
    return Gate("times that a dead path went out", times, 1, cause="no path went out when it died: see the first test")


def keeps(work: StudentWork) -> TestOutcome:
    done, path = dead(work)
    kept_share = share(done, part(done.run, "faults"))
    gone = [event.path for event in done.log.of("leave", done.phase("faults"))]
    gates = (
        left(work),
        Gate("goodput", 100 * kept_share, 100 * KEPT, " %"),
        Gate("times that sound paths went out", sum(other != path for other in gone), SOUND_OUT, at_most=True),
    )
    told = f"{kept_share:.1%} of the ports' rate; paths that went out: {sorted(set(gone))}"
    return judged(f"without path {path} the others carry the load", told, gates, done.look, "leave only what loses")


def returns(work: StudentWork) -> TestOutcome:
    done, path = dead(work)
    counts = done.log.by_path("sent", part(done.run, "after", 0.4))
    total = done.case.fabric["planes"] * done.case.fabric["spines"]
    gates = (left(work), Gate("fewest/most", evenness(counts, total), USED_AGAIN))
    probes = sum(event.path == path for event in done.log.of("probe", Span("all", 0, 1 << 62)))
    told = f"path {path} sent {counts[path]} packets after the fault, others up to {max(counts.values())}"
    cause = "it was never probed" if not probes else f"{probes} probes were sent to it: does an answer bring it back?"
    return judged(f"path {path} is whole again: come back to it", told, gates, done.look, cause)


def lossy(work: StudentWork) -> TestOutcome:
    """The sender's port loses four packets in a hundred: leaving the plane costs half of the rate."""
    plane = work.rng("lossy port").randrange(2)
    seed = work.rng("lossy seed").getrandbits(16)
    done = once(work, "lossy", case(work, "lossy", (TimedFault(0.0, "loss", f"h0-p{plane}l0", 1.95, 4.0, seed),)))
    kept_share = share(done, part(done.run, "faults"))
    went = done.log.count("leave", done.phase("faults"))
    gates = (
        left(work),
        Gate("goodput", 100 * kept_share, 100 * KEPT_LOSSY, " %"),
        Gate("times that paths went out", went, LEAVES_LOSSY, at_most=True),
    )
    told = f"{kept_share:.1%} of the ports' rate; paths went out {counted(went, 'time')}"
    cause = "a single loss among many packets that arrive is no reason to leave; acknowledgements must count in favour"
    return judged("a plane that loses four packets in a hundred is kept", told, gates, done.look, cause)


def grey(work: StudentWork) -> TestOutcome:
    """An uplink that loses a third of its packets answers most probes."""
    rng, shape = work.rng("grey link"), fabric(work.seed)
    target = uplink(rng, shape, rng.randrange(2))
    done = once(work, "grey", case(work, "grey", (TimedFault(0.0, "loss", target, 1.95, 40.0, rng.getrandbits(16)),)))
    path, span = number_of(done, target), done.phase("faults")
    lost = done.log.by_path("lost", span)[path]
    backs = sum(event.path == path for event in done.log.of("back", span))
    gates = (
        Gate("packets lost", lost, LOST_GREY, at_most=True),
        Gate("times that it came back", backs, RETURNS_GREY, at_most=True),
    )
    told = f"path {path} lost {counted(lost, 'packet')}, and came back {counted(backs, 'time')}"
    cause = "one answered probe proves little: ask for several in a row, and for more after a relapse"
    return judged(f"path {path} loses 40 % for 1.95 s: leave it, and stay away", told, gates, done.look, cause)


def total_outage(work: StudentWork) -> TestOutcome:
    """Every uplink of the sender's leaf is dead for some round trips: the last path must not be given up for good."""
    shape = fabric(work.seed)
    faults = tuple(
        TimedFault(0.3, "blackhole", f"p{plane}l0-p{plane}s{spine}", 0.4)
        for plane in range(2)
        for spine in range(shape["spines"])
    )
    done = once(work, "outage", case(work, "outage", faults))
    kept_share = share(done, part(done.run, "after"))
    gates = (left(work), Gate("goodput", 100 * kept_share, 100 * HUNT_BACK, " %"))
    told = f"{kept_share:.1%} of the ports' rate after the outage"
    return judged("every path dies for 0.4 s; afterwards all are used", told, gates, done.look, "do paths come back?")


def dead_uplink(rng: Random, shape: Shape) -> list[TimedFault]:
    """One uplink is dead for most of the time."""
    return [TimedFault(round(rng.uniform(0.0, 0.2), 2), "blackhole", uplink(rng, shape, rng.randrange(2)), 1.6)]


def lossy_port(rng: Random, shape: Shape) -> list[TimedFault]:
    """A port of the sender loses a packet now and then."""
    percent = round(rng.uniform(2.0, LOSSY_PERCENT), 1)
    return [TimedFault(0.0, "loss", f"h0-p{rng.randrange(2)}l0", 1.95, percent, rng.getrandbits(16))]


def grey_uplink(rng: Random, shape: Shape) -> list[TimedFault]:
    """One uplink loses a good share."""
    target, percent = uplink(rng, shape, rng.randrange(2)), float(rng.randrange(30, 60))
    return [TimedFault(0.0, "loss", target, 1.95, percent, rng.getrandbits(16))]


def dead_plane(rng: Random, shape: Shape) -> list[TimedFault]:
    """Everything that the sender's port of one plane sends and gets is lost."""
    return [TimedFault(round(rng.uniform(0.0, 0.3), 2), "blackhole", f"h0-p{rng.randrange(2)}l0", 1.2)]


def flapping_uplink(rng: Random, shape: Shape) -> list[TimedFault]:
    """One uplink dies again and again, and is whole for as long in between."""
    target, length_s = uplink(rng, shape, rng.randrange(2)), round(rng.uniform(0.16, 0.2), 2)
    return [TimedFault(round(2 * turn * length_s, 2), "blackhole", target, length_s) for turn in range(FLAPS)]


def both_planes(rng: Random, shape: Shape) -> list[TimedFault]:
    """Two or three faults; in each plane at least one uplink stays whole."""
    faults = []
    for plane in range(2):
        target = uplink(rng, shape, plane)
        at_s = round(rng.uniform(0.0, 0.3), 2)
        for _ in range(rng.randint(1, 2)):
            length_s = round(rng.uniform(0.1, 0.7), 2)
            verb = rng.choice(("blackhole", "loss"))
            value = round(rng.uniform(30, 90)) if verb == "loss" else None
            faults.append(TimedFault(at_s, verb, target, length_s, value, rng.getrandbits(16) if value else 0))
            at_s = round(at_s + length_s + rng.uniform(0.1, 0.3), 2)
    return faults


DRAWS = (dead_uplink, lossy_port, grey_uplink, dead_plane, flapping_uplink, both_planes, both_planes, both_planes)
"""One for each try: the schedules that break most ideas come first."""


def drawn(work: StudentWork, number: int) -> TrialCase:
    """A try of the hunt."""
    faults = DRAWS[number](work.rng(f"hunt {number}"), fabric(work.seed))
    return case(work, f"hunt {number}", tuple(sorted(faults, key=lambda fault: fault.at_s)))


def crossed(made: TrialCase, fault: TimedFault) -> set[int]:
    """The paths across the target of a fault: one of an uplink, those of a plane of the sender's port."""
    plane, spines = int(fault.target.partition("p")[2][0]), made.fabric["spines"]
    if fault.target.startswith("h0"):
        return set(range(plane * spines, (plane + 1) * spines))
    return {plane * spines + int(fault.target.rpartition("s")[2])}


def rare(fault: TimedFault) -> bool:
    """Whether a fault is no reason to leave a path."""
    return fault.verb == "loss" and (fault.value or 0.0) <= LOSSY_PERCENT


def timeouts(done: Trial) -> set[int]:
    """The instants, in ns, of timeouts."""
    lost = Counter(event.at_ns for event in done.log.of("lost", done.phase("faults")))
    return {at_ns for at_ns, count in lost.items() if count >= TIMEOUT_LOST}


def losses(done: Trial) -> Finding:
    """No path loses more than its faults cost a class that leaves it. Losses at a timeout do not count."""
    excused = timeouts(done)
    lost = Counter(event.path for event in done.log.of("lost", done.phase("faults")) if event.at_ns not in excused)
    over, told = 0, "no path lost more than its faults must cost"
    for path in range(paths(done.case)):
        faults = [fault for fault in done.case.faults if path in crossed(done.case, fault)]
        worst = max((HUNT_LOST[fault.verb] for fault in faults), default=0)
        most = round((HUNT_STRAY + worst + HUNT_RELAPSE * max(0, len(faults) - 1)) * 4 / paths(done.case))
        if not any(rare(fault) for fault in faults) and lost[path] - most > over:
            over, told = lost[path] - most, f"path {path} lost {lost[path]} packets, {most} at most are allowed"
    return Finding("packets lost", not over, told)


def leaving(done: Trial) -> Finding:
    """Sound paths, and those that lose a packet now and then, are kept, but for what a timeout makes of them."""
    bad = {path for fault in done.case.faults if not rare(fault) for path in crossed(done.case, fault)}
    excused = timeouts(done)
    left_by = [event for event in done.log.of("leave", done.phase("faults")) if event.at_ns not in excused]
    went = [event.path for event in left_by if event.path not in bad]
    told = f"paths {sorted(set(went))} went out {len(went)} times without a reason, {HUNT_LEAVES} at most are allowed"
    return Finding("paths kept", len(went) <= HUNT_LEAVES, told)


def returning(done: Trial) -> Finding:
    """Afterwards every path carries its share."""
    counts = done.log.by_path("sent", part(done.run, "after", 0.4))
    fewest = min(range(paths(done.case)), key=lambda path: counts[path])
    told = (
        f"afterwards path {fewest} carried {counts[fewest]} packets, and another one {max(counts.values(), default=0)}"
    )
    return Finding("paths used again", evenness(counts, paths(done.case)) >= USED_AGAIN, told)


def findings(done: Trial) -> list[Finding]:
    most = done.case.possible_bps
    kept = HUNT_KEPT_LOSSY if all(rare(fault) for fault in done.case.faults) else HUNT_KEPT
    if timeouts(done) or any(fault.target.startswith("h0") and not rare(fault) for fault in done.case.faults):
        kept = HUNT_KEPT_PLANE
    return [
        losses(done),
        leaving(done),
        returning(done),
        carries("faults", most * kept)(done.run),
        carries("after", most * HUNT_BACK, 0.4)(done.run),
    ]


HUNT = CourseHunt(
    len(DRAWS), drawn, findings, f"{len(DRAWS)} drawn schedules of dead, grey and lossy paths are survived"
)


LAB = Exercise(
    name="health",
    title="Path health: when to leave, when to come back",
    minutes=150,
    tests=(
        Test("leave", "a dead path is left", 2, leaves),
        Test("keep", "the others carry the load", 1, keeps),
        Test("return", "a whole path is used again", 2, returns),
        Test("lossy", "a rare loss is no reason to leave", 2, lossy),
        Test("grey", "a grey path stays out", 2, grey),
        Test("outage", "after an outage all paths come back", 2, total_outage),
        Test("hunt", "a hunt finds no schedule that breaks it", 3, HUNT.hunted),
    ),
)
