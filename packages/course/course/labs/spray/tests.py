"""Lab 5: a selection that is even over planes and survives unequal ones."""

from __future__ import annotations

from random import Random

from common.seeds import Purpose, derive
from course.exercise import Exercise, StudentWork, Test
from course.result import Gate, TestOutcome, judged
from course.seams.held import carries, part
from course.seams.hunt import CourseHunt
from course.seams.log import evenness
from course.seams.trial import Trial, TrialCase, once, uplink
from judging import Finding
from judging.measures import goodput
from scenarios import TimedFault, Workload

EVEN_PLANES, EVEN_PATHS, FULL_RATE = 0.9, 0.75, 0.95
KEPT, RETURNED, USED_AGAIN = 0.75, 0.92, 0.5
TRIES = 4
SLOW_MBPS = {2: (2.0, 3.0), 3: (1.0, 2.0)}
"""The rate of a slow uplink by the spines of a plane: equal shares lose as much with three paths as with two."""
LOAD = (Workload("write_bw", {"size": 65_536, "depth": 24, "qps": 1, "messages": 0}, ("h0", "h1"), name="load0"),)


def fabric(seed: int) -> dict[str, int]:
    """Two or three planes of two or three spines: seeds differ, the load of each path doesn't."""
    rng = Random(derive(seed, Purpose.LESSON, "spray fabric"))
    planes, spines = rng.choice(((2, 2), (2, 3), (3, 2)))
    return {"planes": planes, "leaves": 2, "spines": spines, "hosts_per_leaf": 1}


def case(work: StudentWork, name: str, faults: tuple[TimedFault, ...]) -> TrialCase:
    """The load of the lab between two hosts, with these faults."""
    number = work.rng(name).getrandbits(31)
    return TrialCase(number, fabric(work.seed), LOAD, faults, reference_s=1.5, faults_s=2.0, after_s=2.0, seam="spray")


def undisturbed(work: StudentWork) -> Trial:
    return once(work, "whole", case(work, "whole", ()))


def planes(work: StudentWork) -> TestOutcome:
    trial = undisturbed(work)
    counts = trial.log.by_plane("sent", part(trial.run, "reference"))
    count = trial.case.fabric["planes"]
    gate = Gate("fewest/most", evenness(counts, count), EVEN_PLANES)
    told = ", ".join(f"plane {plane}: {counts[plane]}" for plane in range(count))
    cause = "chance is not even: prefer the plane that has fewer packets than the others"
    if len(counts) < count:
        cause = "a plane without packets: choose never returns its paths"
    return judged("every plane carries the same number of packets", told, (gate,), trial.look, cause)


def paths(work: StudentWork) -> TestOutcome:
    trial = undisturbed(work)
    counts = trial.log.by_path("sent", part(trial.run, "reference"))
    shape = trial.case.fabric
    number = shape["planes"] * shape["spines"]
    gate = Gate("fewest/most", evenness(counts, number), EVEN_PATHS)
    told = ", ".join(f"path {path}: {counts[path]}" for path in range(number))
    idle = [path for path in range(number) if not counts[path]]
    cause = "chance is not even: prefer the path that has fewer packets than the others"
    if idle:
        cause = f"path {idle[0]} is never chosen: planes are even, but spines are left out"
    return judged(
        "every path of a plane carries its share", f"packets of each path: {told}", (gate,), trial.look, cause
    )


def rate(work: StudentWork) -> TestOutcome:
    trial = undisturbed(work)
    share = goodput.over(trial.run, part(trial.run, "reference")) / trial.case.possible_bps
    gate = Gate("goodput", 100 * share, 100 * FULL_RATE, " %")
    return judged(
        "with nothing broken the ports are never idle",
        f"{share:.1%} of the rate of all ports",
        (gate,),
        trial.look,
        "ports idle while choose returns None, or sticks to one",
    )


def slow_path(work: StudentWork) -> TestOutcome:
    """One uplink per plane is slow: the others have room for its packets."""
    rng, shape = work.rng("slow link"), fabric(work.seed)
    faults = tuple(
        TimedFault(0.0, "rate", uplink(rng, shape, plane), 1.99, round(rng.uniform(*SLOW_MBPS[shape["spines"]]), 1))
        for plane in range(shape["planes"])
    )
    trial = once(work, "slow", case(work, "slow", faults))
    share = goodput.over(trial.run, part(trial.run, "faults")) / trial.case.possible_bps
    gate = Gate("goodput", 100 * share, 100 * KEPT, " %")
    span = part(trial.run, "faults")
    told = ", ".join(f"path {path}: {count}" for path, count in sorted(trial.log.by_path("sent", span).items()))
    return judged(
        "with one slow uplink in every plane the other uplinks carry the load",
        f"{share:.1%} of the rate of all ports; packets {told}",
        (gate,),
        trial.look,
        "a slow path must get fewer packets than a fast one, or the whole window waits in its queue",
    )


def lost_path(work: StudentWork) -> TestOutcome:
    """One uplink swallows packets for a while; afterwards it is used like the others."""
    rng, shape = work.rng("dead link"), fabric(work.seed)
    target = uplink(rng, shape, rng.randrange(shape["planes"]))
    trial = once(work, "dead", case(work, "dead", (TimedFault(0.1, "blackhole", target, 1.2),)))
    counts = trial.log.by_path("sent", part(trial.run, "after"))
    number = shape["planes"] * shape["spines"]
    gate = Gate("fewest/most", evenness(counts, number), USED_AGAIN)
    told = ", ".join(f"path {path}: {counts[path]}" for path in range(number))
    cause = "a packet that is lost isn't under way any more: does on_lost say so to your counts?"
    idle = [str(path) for path in range(number) if not counts[path]]
    if len(idle) > 1:
        never = f"paths {' and '.join(idle)} are never chosen"
        cause = f"{never}, and only one path was broken: turns must not skip a path that may send"
    return judged(
        f"{target} swallows every packet for 1.2 s; once it is whole, its path carries its share again",
        f"after the fault, packets of each path: {told}",
        (gate,),
        trial.look,
        cause,
    )


def drawn(work: StudentWork, number: int) -> TrialCase:
    """A try of the hunt: each plane may have one uplink that is slow or long. Tries take turns over the spines."""
    rng, shape = work.rng(f"hunt {number}"), fabric(work.seed)
    faults: list[TimedFault] = []
    spine = number % shape["spines"]
    for plane in rng.sample(range(shape["planes"]), rng.randint(1, shape["planes"])):
        at_s = round(rng.uniform(0.0, 0.3), 2)
        verb = "rate" if not faults else rng.choice(("rate", "delay"))
        value = round(rng.uniform(*SLOW_MBPS[shape["spines"]]), 1) if verb == "rate" else float(rng.randrange(20, 80))
        faults.append(TimedFault(at_s, verb, f"p{plane}l0-p{plane}s{spine}", round(1.98 - at_s, 2), value))
    return case(work, f"hunt {number}", tuple(sorted(faults, key=lambda fault: fault.at_s)))


def findings(trial: Trial) -> list[Finding]:
    most = trial.case.possible_bps
    delayed = any(fault.verb == "delay" for fault in trial.case.faults)
    kept = carries("faults", most * KEPT * (0.85 if delayed else 1.0))
    return [kept(trial.run), carries("after", most * RETURNED)(trial.run)]


HUNT = CourseHunt(
    TRIES, drawn, findings, f"{TRIES} drawn schedules of slow and long uplinks cost little, and nothing afterwards"
)


LAB = Exercise(
    name="spray",
    title="Spraying: even, and alive on unequal paths",
    minutes=120,
    tests=(
        Test("rate", "the ports are never idle", 1, rate, "paths"),
        Test("planes", "even over planes", 1, planes, "paths"),
        Test("paths", "even over the paths of a plane", 3, paths),
        Test("slow", "slow uplinks get fewer packets", 2, slow_path, "paths"),
        Test("lost", "a path that was dead is used again", 3, lost_path),
        Test("hunt", "a hunt finds no schedule that breaks it", 4, HUNT.hunted),
    ),
)
