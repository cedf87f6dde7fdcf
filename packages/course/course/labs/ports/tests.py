"""Lab 8: a NIC that loses ports. Updates to tell, and updates to believe."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from common.terminal.counted import counted
from course.exercise import Exercise, StudentWork, Test
from course.result import Gate, TestOutcome, judged
from course.seams.held import carries, grown, part
from course.seams.hunt import CourseHunt
from course.seams.log import Note
from course.seams.trial import Trial, TrialCase, once
from judging import Finding, Span
from judging.measures import goodput
from scenarios import TimedFault, Workload

FABRIC = {"planes": 3, "leaves": 2, "spines": 2, "hosts_per_leaf": 2}
PLANES, NIC, WRITER, READER = 3, "h0", "h2", "h3"
PEERS = (WRITER, READER)
OPTIONS = {"size": 65_536, "depth": 24, "qps": 1, "messages": 0}
LOAD = (
    Workload("write_bw", OPTIONS, (WRITER, NIC), name="load0"),
    Workload("write_bw", OPTIONS, (NIC, READER), name="load1"),
)
KNOWN, KNOWN_LOSSY, KNOWN_BOTH, WRONG = 2.0, 16.0, 8.0, 3.0  # round trips
LOST, UPDATES, BACK = 34, 16, 0.9
HUNT_BACK, HUNT_KNOWN, TRIES = 0.85, 20.0, 4
FAULT_S, AFTER_S = 1.6, 1.6


def case(work: StudentWork, name: str, faults: tuple[TimedFault, ...]) -> TrialCase:
    """The load of the lab with these faults. Paths take turns: nothing but the NICs' updates keeps packets away."""
    number = work.rng(name).getrandbits(31)
    return TrialCase(
        number, FABRIC, LOAD, faults, settings={"selection": "round_robin"},
        reference_s=0.5, faults_s=FAULT_S, after_s=AFTER_S, seam="ports",
    )  # fmt: skip


def truths(done: Trial, host: str = NIC) -> list[Note]:
    """The changes of a NIC's own ports, in order."""
    return [note for note in done.log.notes if note.kind == "ports" and note.host == host]


def believed_at(done: Trial, host: str, peer: str, at_ns: int) -> tuple[int, ...]:
    """The ports of a peer that a host takes to be up at a time."""
    notes = [n for n in done.log.notes if (n.kind, n.host, n.peer) == ("believes", host, peer) and n.at_ns <= at_ns]
    return notes[-1].planes if notes else tuple(range(PLANES))


def known_rtts(done: Trial, change: Note, peer: str, until_ns: int) -> float:
    """Round trips until a peer believes what is true of the NIC for good; all the time there is if it never does."""
    rtt_ns = done.case.plan.base_rtt_ns
    notes = [
        n for n in done.log.notes
        if (n.kind, n.host, n.peer) == ("believes", peer, change.host) and change.at_ns <= n.at_ns < until_ns
    ]  # fmt: skip
    if believed_at(done, peer, change.host, until_ns - 1) != change.planes:
        return (until_ns - change.at_ns) / rtt_ns
    return (notes[-1].at_ns - change.at_ns) / rtt_ns if notes else 0.0


def slowest(done: Trial, host: str = NIC, peers: Iterable[str] = PEERS) -> tuple[float, str, Note | None]:
    """The longest that a peer needed for a change of a host's ports: round trips, peer, change."""
    changes = truths(done, host)
    longest: tuple[float, str, Note | None] = (0.0, "", None)
    for number, change in enumerate(changes):
        until_ns = changes[number + 1].at_ns if number + 1 < len(changes) else done.run.phases["after"].stop_ns
        for peer in peers:
            longest = max(longest, (known_rtts(done, change, peer, until_ns), peer, change), key=lambda entry: entry[0])
    return longest


def updates(done: Trial, span: Span, host: str = NIC) -> list[Note]:
    return [
        n for n in done.log.notes if n.kind == "update" and n.host == host and span.start_ns <= n.at_ns < span.stop_ns
    ]


def spoken(done: Trial, host: str = NIC) -> Gate:
    """A NIC that never says a word keeps no rule of talking."""
    sent = updates(done, Span("", 0, 1 << 62), host)
    return Gate(f"updates of {host}", len(sent), 1, cause=f"{host} tells its peers nothing: see the first test")


def why(done: Trial, host: str, peer: str, change: Note | None) -> str:
    """Why a peer does not know, as far as what was sent can tell."""
    if change is None:
        return ""
    sent = [
        n
        for n in done.log.notes
        if n.kind == "update" and n.host == host and n.peer == peer and n.at_ns >= change.at_ns
    ]
    alive = [n for n in sent if n.planes[0] in change.planes]
    if not sent:
        return f"{host} sent no update to {peer}: every peer must be told"
    if not alive:
        return f"{host} told {peer} by plane {sent[0].planes[0]} only, whose port is down"
    heard = any(
        (n.kind, n.host, n.peer) == ("believes", peer, host) and n.at_ns >= change.at_ns for n in done.log.notes
    )
    if not heard:
        still = list(believed_at(done, peer, host, change.at_ns))
        told = f"{len(alive)} updates went to {peer}, which still believes {still}, and {list(change.planes)} are up"
        return f"{told}: what does on_update make of believed?"
    return f"{peer} believes {list(believed_at(done, peer, host, 1 << 62))}, and {list(change.planes)} are up"


def plane_of(work: StudentWork, name: str) -> int:
    return work.rng(name).randrange(PLANES)


def down(work: StudentWork) -> Trial:
    """The NIC loses a port for a second, and gets it back."""
    plane = plane_of(work, "lost port")
    return once(work, "down", case(work, "down", (TimedFault(0.1, "port-down", f"{NIC}.p{plane}", 1.2),)))


def tells(work: StudentWork) -> TestOutcome:
    done = down(work)
    rtts, peer, change = slowest(done)
    gate = Gate("until all peers know", rtts, KNOWN, " round trips", at_most=True)
    told = f"the slowest to know was {peer or 'no peer'}, after {rtts:.1f} round trips"
    return judged(
        f"{NIC} loses a port, and gets it back: {' and '.join(PEERS)} know within {KNOWN:g} round trips",
        told, (gate,), done.look, why(done, NIC, peer, change),
    )  # fmt: skip


def spares(work: StudentWork) -> TestOutcome:
    done = down(work)
    lost = grown(
        done.run, "retransmits", Span("all", done.run.phases["faults"].start_ns, done.run.phases["after"].stop_ns)
    )
    gate = Gate("packets sent again", lost, LOST, at_most=True)
    told = f"{counted(lost, 'packet was', 'packets were')} sent again"
    advice = f"only what was under way may be lost: {WRITER} goes on sending by a plane whose port {NIC} has lost"
    return judged("a lost port costs what was under way", told, (gate,), done.look, advice)


def recovers(work: StudentWork) -> TestOutcome:
    done = down(work)
    rate_share = goodput.over(done.run, part(done.run, "after")) / (2 * done.case.possible_bps)
    gates = (spoken(done), Gate("goodput", 100 * rate_share, 100 * BACK, " %"))
    told = f"{rate_share:.1%} of the rate once the port is back"
    return judged(
        "a port that is back is used again", told, gates, done.look, "does believed hold all planes of the update?"
    )


def quiet(work: StudentWork) -> TestOutcome:
    done = down(work)
    changes = truths(done)
    late = updates(done, part(done.run, "after", 0.5))
    ends_ns = [*(change.at_ns for change in changes[1:]), 1 << 62]
    spans = [Span("", change.at_ns, end_ns) for change, end_ns in zip(changes, ends_ns, strict=True)]
    most = max((sum(n.peer == peer for n in updates(done, span)) for span in spans for peer in PEERS), default=0)
    gates = (
        spoken(done),
        Gate("updates per change and peer", most, UPDATES, at_most=True),
        Gate("updates long after", len(late), 0, at_most=True),
    )
    told = f"up to {most} updates for one change to one peer, {len(late)} in the last second"
    advice = "an answered update must not be repeated; an unanswered one about every two round trips"
    return judged("when all is said, the NIC is quiet", told, gates, done.look, advice)


def repeats(work: StudentWork) -> TestOutcome:
    """For 0.35 s all packets of the NIC are lost."""
    plane = plane_of(work, "repeat port")
    others = [number for number in range(PLANES) if number != plane]
    losses = tuple(TimedFault(0.0, "loss", f"{NIC}>p{other}l0", 0.45, 100.0, 1) for other in others)
    done = once(work, "repeat", case(work, "repeat", (*losses, TimedFault(0.1, "port-down", f"{NIC}.p{plane}", 1.4))))
    change = truths(done)[0]
    rtts = {peer: known_rtts(done, change, peer, truths(done)[1].at_ns) for peer in PEERS}
    peer = max(rtts, key=lambda name: rtts[name])
    gate = Gate("until all peers know", rtts[peer], KNOWN_LOSSY, " round trips", at_most=True)
    sent = len([n for n in updates(done, Span("", change.at_ns, truths(done)[1].at_ns)) if n.peer == peer])
    told = f"{peer} knew after {rtts[peer]:.1f} round trips; {sent} updates were sent to it"
    advice = "an update may be lost: repeat it by every port that is up until an answer comes"
    return judged("for 0.35 s every update is lost; afterwards the peers know", told, (gate,), done.look, advice)


def ordered(work: StudentWork) -> TestOutcome:
    """The way of one plane is long: updates by it arrive after newer ones."""
    rng = work.rng("order")
    slow, lost = rng.sample(range(PLANES), 2)
    faults = (
        *(TimedFault(0.0, "delay", f"p{slow}l1>{peer}", 1.5, 220.0) for peer in PEERS),
        TimedFault(0.1, "port-down", f"{NIC}.p{lost}", 0.12),
    )
    done = once(work, "order", case(work, "order", faults))
    up = truths(done)[-1]
    rtts = {peer: known_rtts(done, up, peer, done.run.phases["after"].start_ns) for peer in PEERS}
    peer = max(rtts, key=lambda name: rtts[name])
    gates = (
        spoken(done),
        Gate("until the truth is believed for good", rtts[peer], WRONG, " round trips", at_most=True),
    )
    told = f"after the port was back, {peer} believed in the end what is true after {rtts[peer]:.1f} round trips"
    ways = {n.planes[0] for n in updates(done, Span("", up.at_ns, up.at_ns + 1)) if n.peer == peer}
    advice = "an old update, overtaken on the way, changed what was known already: heed only numbers that are newer"
    if ways and ways != set(up.planes):
        planes = " and ".join(map(str, sorted(ways)))
        advice = f"{NIC} told {peer} by plane {planes} alone, and this way may be long: send by every port that is up"
    return judged(
        f"an update that was overtaken (plane {slow} takes 220 ms) changes nothing", told, gates, done.look, advice
    )


def both(work: StudentWork) -> TestOutcome:
    """Both ends lose a port of different planes: one plane is left."""
    mine, its = work.rng("both").sample((0, PLANES - 1), 2)
    faults = (
        TimedFault(0.1, "port-down", f"{NIC}.p{mine}", 1.3),
        TimedFault(0.1, "port-down", f"{WRITER}.p{its}", 1.3),
    )
    done = once(work, "both", case(work, "both", faults))
    pairs = [(NIC, WRITER), (WRITER, NIC)]
    by_pair = {pair: slowest(done, pair[0], (pair[1],)) for pair in pairs}
    pair = max(by_pair, key=lambda ends: by_pair[ends][0])
    rtts, peer, change = by_pair[pair]
    gate = Gate("until both know", rtts, KNOWN_BOTH, " round trips", at_most=True)
    told = f"{pair[1]} knew of the ports of {pair[0]} after {rtts:.1f} round trips"
    advice = f"{why(done, pair[0], peer, change)}; a single port may lead nowhere: send by every port that is up"
    return judged(f"{NIC} and {WRITER} lose ports of two planes at once", told, (gate,), done.look, advice)


def drawn(work: StudentWork, number: int) -> TrialCase:
    """A try of the hunt: ports of the NIC and of a peer come and go; ways are lossy or long. A plane stays whole."""
    rng = work.rng(f"hunt {number}")
    whole = rng.randrange(PLANES)
    planes = [plane for plane in range(PLANES) if plane != whole]
    faults = []
    for host in rng.sample((NIC, WRITER, READER), rng.randint(1, 2)):
        at_s, plane = round(rng.uniform(0.05, 0.3), 2), rng.choice(planes)
        for _ in range(rng.randint(1, 3)):
            length_s = round(rng.uniform(0.05, 0.3), 2)
            faults.append(TimedFault(at_s, "port-down", f"{host}.p{plane}", length_s))
            at_s = round(at_s + length_s + rng.uniform(0.05, 0.2), 2)
    faults.append(hindrance(rng, whole))
    return case(work, f"hunt {number}", tuple(sorted(faults, key=lambda fault: fault.at_s)))


def hindrance(rng: Random, plane: int) -> TimedFault:
    """A fault that makes updates by one plane late or rare."""
    target = rng.choice((f"p{plane}l0>{NIC}", f"p{plane}l1>{WRITER}", f"p{plane}l1>{READER}"))
    if rng.random() < 0.5:
        return TimedFault(0.0, "delay", target, 1.4, float(rng.randrange(100, 250)))
    return TimedFault(0.0, "loss", target, 1.4, float(rng.randrange(30, 70)), rng.getrandbits(16))


def findings(done: Trial) -> list[Finding]:
    end_ns = done.run.phases["after"].stop_ns
    wrong = []
    for host in (NIC, WRITER, READER):
        changes = truths(done, host)
        if changes and not spoken(done, host).open:
            wrong.append(f"{host} lost a port and sent no update")
        for peer in PEERS if host == NIC else (NIC,):
            if changes and (rtts := known_rtts(done, changes[-1], peer, end_ns)) > HUNT_KNOWN:
                wrong.append(f"{peer} did not know the ports of {host} {rtts:.0f} round trips after their last change")
    told = wrong[0] if wrong else f"all peers knew within {HUNT_KNOWN:g} round trips"
    return [
        Finding("peers know", not wrong, told),
        carries("after", 2 * done.case.possible_bps * HUNT_BACK, 0.4)(done.run),
    ]


HUNT = CourseHunt(TRIES, drawn, findings, f"{TRIES} drawn schedules of ports that come and go are survived")
LAB = Exercise(
    name="ports",
    title="A NIC that loses ports: telling the peers",
    minutes=120,
    tests=(
        Test("tell", "every peer knows soon", 3, tells),
        Test("spare", "little is lost", 2, spares, "tell"),
        Test("back", "a port that is back is used", 1, recovers),
        Test("quiet", "quiet when all is said", 2, quiet),
        Test("repeat", "lost updates are repeated", 2, repeats),
        Test("order", "overtaken updates change nothing", 3, ordered),
        Test("both", "both ends lose ports at once", 2, both),
        Test("hunt", "a hunt finds no schedule that breaks it", 3, HUNT.hunted),
    ),
)
