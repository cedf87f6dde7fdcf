"""Lab 7: a congestion window that is full alone, fair in an incast, and trims little."""

from __future__ import annotations

from common.quoting import command
from course.exercise import Exercise, StudentWork, Test, typed
from course.result import Gate, TestOutcome, judged
from course.seams.held import carries, grown, part
from course.seams.hunt import CourseHunt
from course.seams.trial import Trial, TrialCase, once
from judging import Finding
from judging.measures import goodput
from scenarios import TimedFault, Workload

ALONE, FULL, FAIR, TRIMS, BACK = 0.96, 0.95, 0.9, 0.003, 0.9
"""`TRIMS` is below the half percent and more of a window that shrinks at trims alone. One that shrinks by marks or by
delay trims nothing once it has settled."""
HUNT_BACK, TRIES = 0.85, 3
SETTLED = 0.5
OPTIONS = {"size": 65_536, "depth": 24, "qps": 1, "messages": 0}
RECEIVER = "h4"
FABRIC = {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 4}


def senders(work: StudentWork) -> int:
    """Three or four: all on the other leaf."""
    return work.rng("senders").choice((3, 4))


def case(
    work: StudentWork, name: str, count: int, faults: tuple[TimedFault, ...], reference_s: float = 0.5
) -> TrialCase:
    """So many senders to one receiver."""
    ranks = (RECEIVER, *(f"h{number}" for number in range(count)))
    load = Workload("incast", OPTIONS, ranks, name="load0")
    if count == 1:
        load = Workload("write_bw", OPTIONS, ("h0", RECEIVER), name="load0")
    length_s = 2.0 if faults else 0.3
    return TrialCase(
        work.rng(name).getrandbits(31), FABRIC, (load,), faults,
        reference_s=reference_s, faults_s=length_s, after_s=length_s + 0.5, seam="window",
    )  # fmt: skip


def alone(work: StudentWork) -> Trial:
    return once(work, "alone", case(work, "alone", 1, (), reference_s=2.5))


def incast(work: StudentWork) -> Trial:
    return once(work, "incast", case(work, "incast", senders(work), (), reference_s=5.0))


def look(done: Trial) -> tuple[str, ...]:
    return (*done.look, command("report", typed(done.folder))) if done.folder else ()


def full_alone(work: StudentWork) -> TestOutcome:
    done = alone(work)
    share = goodput.over(done.run, part(done.run, "reference", SETTLED)) / done.case.possible_bps
    gate = Gate("goodput", 100 * share, 100 * ALONE, " %")
    windows = [window for _, window in done.windows[0]]
    told = f"{share:.1%} of the ports' rate; the window went from {windows[0]} to {windows[-1]} bytes"
    return judged("one sender alone fills its ports", told, (gate,), look(done), "does it grow when nothing is marked?")


def full_incast(work: StudentWork) -> TestOutcome:
    done = incast(work)
    share = goodput.over(done.run, part(done.run, "reference", SETTLED)) / done.case.possible_bps
    gates = (moving(done), Gate("goodput", 100 * share, 100 * FULL, " %"))
    told = f"{senders(work)} senders together reach {share:.1%} of the receiver's rate"
    return judged("an incast fills the receiver's ports", told, gates, look(done), "windows are cut too deep")


def moving(done: Trial) -> Gate:
    """A window that never moves controls nothing, and gets no points for an incast that happens to fit."""
    moved = sum(len({size for _, size in history}) > 1 for history in done.windows)
    return Gate("windows that moved", moved, 1, cause="it must shrink and grow by what it hears")


def few_trims(work: StudentWork) -> TestOutcome:
    done = incast(work)
    span = part(done.run, "reference", SETTLED)
    trims, packets = grown(done.run, "trims", span), grown(done.run, "data_packets", span)
    share = trims / max(1, packets)
    gates = (moving(done), Gate("packets trimmed", 100 * share, 100 * TRIMS, " %", at_most=True))
    told = f"{trims} of {packets} packets were trimmed; windows at the end: {last(done)} bytes"
    cause = "the windows together are larger than path and queues: a mark, a trim or a long round trip must shrink them"
    return judged("once windows have settled, switches trim little", told, gates, look(done), cause)


def last(done: Trial) -> str:
    """The last windows of the senders, which have heard anything."""
    return ", ".join(str(history[-1][1]) for history in done.windows if len(history) > 1)


def fair(work: StudentWork) -> TestOutcome:
    done = incast(work)
    span = part(done.run, "reference", SETTLED)
    rates = [goodput.over(done.run, span, [f"h{number}"]) / 1e6 for number in range(senders(work))]
    squares = len(rates) * sum(rate * rate for rate in rates)
    index = sum(rates) ** 2 / squares if squares else 0.0
    gates = (moving(done), Gate("Jain's index", index, FAIR))
    told = ", ".join(f"{rate:.2f}" for rate in rates)
    cause = "a large window must lose more than a small one, and all must grow alike"
    return judged("the senders of an incast get equal rates", f"senders get {told} Mb/s", gates, look(done), cause)


def comes_back(work: StudentWork) -> TestOutcome:
    mbps = round(work.rng("slow").uniform(1.5, 3.0), 1)
    faults = tuple(TimedFault(0.0, "rate", f"p{plane}l1>{RECEIVER}", 1.9, mbps) for plane in range(2))
    done = once(work, "back", case(work, "back", 1, faults))
    share = goodput.over(done.run, part(done.run, "after")) / done.case.possible_bps
    gate = Gate("goodput", 100 * share, 100 * BACK, " %")
    windows = [window for at, window in done.windows[0] if at >= done.run.phases["after"].start_ns] or [0]
    told = f"{share:.1%} of the rate; the window grew from {windows[0]} to {windows[-1]} bytes"
    return judged(
        f"the receiver's ports run at {mbps:g} Mb/s for 1.9 s; afterwards the rate comes back",
        told,
        (gate,),
        look(done),
        "a window that was cut has to grow again within some round trips",
    )


def drawn(work: StudentWork, number: int) -> TrialCase:
    """A try of the hunt: the receiver's ports are slow, one after the other or at once."""
    rng = work.rng(f"hunt {number}")
    faults = []
    for plane in range(2):
        at_s = round(rng.uniform(0.0, 0.9), 2)
        length_s = round(rng.uniform(0.3, 0.95), 2)
        faults.append(TimedFault(at_s, "rate", f"p{plane}l1>{RECEIVER}", length_s, round(rng.uniform(1.5, 6.0), 1)))
    return case(work, f"hunt {number}", rng.choice((1, 2, 3)), tuple(sorted(faults, key=lambda fault: fault.at_s)))


def findings(done: Trial) -> list[Finding]:
    return [carries("after", done.case.possible_bps * HUNT_BACK)(done.run)]


HUNT = CourseHunt(TRIES, drawn, findings, f"after {TRIES} drawn schedules of slow ports the rate is back")


LAB = Exercise(
    name="window",
    title="A congestion window: full alone, fair together",
    minutes=150,
    tests=(
        Test("alone", "full rate alone", 2, full_alone),
        Test("trims", "few packets are trimmed", 3, few_trims),
        Test("full", "an incast is at full rate", 2, full_incast),
        Test("fair", "an incast is fair", 3, fair),
        Test("back", "the rate comes back", 2, comes_back),
        Test("hunt", "a hunt finds no schedule that breaks it", 3, HUNT.hunted, "back"),
    ),
)
