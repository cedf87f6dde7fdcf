"""Lab 4: trimming in P4. Bursts go through a slow port; arithmetic says which packets leave whole."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from course.bench.bench import Bench, compiled, trace_look
from course.bench.frames import BenchFrame, read
from course.exercise import Exercise, StudentWork, Test
from course.result import Gate, TestOutcome

AROUND = "around_trim.p4"
RATE_BPS = 10_000_000
TRIMMED_BYTES, PAYLOAD_BYTES = 128, 74
TRIMMABLE, CONTROL, TRIMMED, TRIMMED_LAST_HOP = 10, 46, 20, 22
TRACED_BYTES = 80  # of the packet that a reader may trace
UP, DOWN = 2, 3  # a port to a spine, and one to a host
ADDRESS = {UP: "fcbb:bbbb:2000::", DOWN: "fcbb:bbbb:3000::"}


def limit(work: StudentWork) -> int:
    """How many packets may wait."""
    return work.rng("limit").randrange(4, 12)


def entries(work: StudentWork) -> str:
    most = limit(work)
    return (
        f"add lab_ports hdr.ipv6.dst_addr:{ADDRESS[UP]}/48 to_port(port:{UP})\n"
        f"add lab_ports hdr.ipv6.dst_addr:{ADDRESS[DOWN]}/48 to_port(port:{DOWN})\n"
        f"add limits standard_metadata.egress_spec:{UP} limit(packets:{most}, dscp:{TRIMMED})\n"
        f"add limits standard_metadata.egress_spec:{DOWN} limit(packets:{most + 2}, dscp:{TRIMMED_LAST_HOP})"
    )


@dataclass(slots=True)
class SentFrames:
    """The frames that left a port, in order."""

    frames: list[BenchFrame] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    @property
    def untrimmed(self) -> list[BenchFrame]:
        return [frame for frame in self.frames if frame.dscp == TRIMMABLE]

    @property
    def trimmed(self) -> list[BenchFrame]:
        return [frame for frame in self.frames if frame.dscp != TRIMMABLE]


def frame(port: int, payload: int, dscp: int = TRIMMABLE, number: int = 0) -> BenchFrame:
    body = number.to_bytes(4, "big") + bytes(index & 0xFF for index in range(payload - 4))
    return BenchFrame(ipaddress.IPv6Address(ADDRESS[port]), 64, dscp, body)


def send(bench: Bench, frames: Sequence[BenchFrame]) -> dict[int, SentFrames]:
    """A burst at one instant; the frames that left by each port until nothing waits."""
    for frame in frames:
        bench.send(1, frame.packed())
    seen = {UP: SentFrames(), DOWN: SentFrames()}
    for sent in bench.out():
        received = read(sent.frame)
        if received is not None and sent.port in seen:
            seen[sent.port].frames.append(received)
            seen[sent.port].lengths.append(len(sent.frame))
    return seen


def bench_of(work: StudentWork) -> Bench:
    return Bench(work, AROUND, entries(work), RATE_BPS)


def builds(work: StudentWork) -> TestOutcome:
    compiled(work, AROUND)
    return TestOutcome(True, "the controls compile", "they do")


def idle(work: StudentWork) -> TestOutcome:
    bench = bench_of(work)
    whole, sent = 0, 20
    for number in range(sent):
        seen = send(bench, [frame(UP, 900, number=number)])[UP]
        whole += seen.frames == [frame(UP, 900, number=number)] or same(seen.frames, frame(UP, 900, number=number))
    told = f"{whole} of {sent} packets left whole, one at a time through an idle port"
    cause = (
        "" if whole == sent else ": the account must fall again when a packet leaves, or the port seems full for ever"
    )
    return told_of(work, "an idle port trims nothing", told + cause, Gate("whole", whole, sent), UP)


def same(frames: list[BenchFrame], sent: BenchFrame) -> bool:
    """Whether exactly this frame came out, unchanged."""
    return len(frames) == 1 and frames[0] == read(sent.packed())


def told_of(work: StudentWork, expected: str, happened: str, gate: Gate, port: int) -> TestOutcome:
    look = trace_look(work, entries(work), 1, frame(port, TRACED_BYTES).packed())
    return TestOutcome(gate.open, expected, happened, (gate,), () if gate.open else look)


def burst(port: int, more: int) -> Callable[[StudentWork], TestOutcome]:
    """A burst into an idle port: the limit waits, one is on the line, the rest is trimmed."""

    def run(work: StudentWork) -> TestOutcome:
        most = limit(work) + (2 if port == DOWN else 0)
        count = most + 1 + more
        seen = send(bench_of(work), [frame(port, 900, number=number) for number in range(count)])[port]
        whole, want = len(seen.untrimmed), most + 1
        gate = Gate("packets too many or too few", abs(whole - want), 0, at_most=True)
        told = f"limit {most}: of {count} packets at once {whole} left whole and {len(seen.trimmed)} trimmed"
        cause = ""
        if whole != want:
            cause = f"; {want} must be whole: {most} that wait, and the one on the line"
            cause += "; nothing was trimmed" if whole == count else ""
        return told_of(work, "exactly what finds no room is trimmed", told + cause, gate, port)

    return run


def cut(work: StudentWork) -> TestOutcome:
    most = limit(work)
    seen = send(bench_of(work), [frame(UP, 900, number=number) for number in range(most + 6)])[UP]
    right, why = 0, "no packet was trimmed"
    trimmed = [at for at, out in enumerate(seen.frames) if out.dscp != TRIMMABLE]
    for at in trimmed:
        cut = seen.frames[at]
        if seen.lengths[at] != TRIMMED_BYTES:
            why = f"a trimmed frame has {seen.lengths[at]} bytes; it must have {TRIMMED_BYTES}"
        elif cut.payload_length != PAYLOAD_BYTES:
            why = (
                f"the header of a trimmed frame says payload length {cut.payload_length}; {PAYLOAD_BYTES} bytes follow"
            )
        elif cut.payload[4:] != frame(UP, 900).payload[4:PAYLOAD_BYTES]:
            why = "bytes behind the header have changed"
        else:
            right += 1
    happened = why if right < 5 else f"{right} trimmed frames are right"
    return told_of(work, "a trimmed frame has 128 bytes, and its header says so", happened, Gate("right", right, 5), UP)


def mark(port: int, dscp: int) -> Callable[[StudentWork], TestOutcome]:
    def run(work: StudentWork) -> TestOutcome:
        count = limit(work) + 8
        seen = send(bench_of(work), [frame(port, 900, number=number) for number in range(count)])[port]
        dscps = [out.dscp for out in seen.trimmed]
        right = sum(value == dscp for value in dscps)
        gate = Gate("right DSCPs", right, max(1, len(dscps)))
        told = f"trimmed packets have DSCP {sorted(set(dscps)) or 'none: nothing was trimmed'}"
        where = "to a host the last hop is marked" if port == DOWN else "inside the fabric"
        return told_of(work, f"trimmed {where}: DSCP {dscp}", f"{told}; the entry of the port says {dscp}", gate, port)

    return run


def overtakes(work: StudentWork) -> TestOutcome:
    count = limit(work) + 6
    seen = send(bench_of(work), [frame(UP, 900, number=number) for number in range(count)])[UP]
    places = [at for at, out in enumerate(seen.frames) if out.dscp != TRIMMABLE]
    behind = sum(at > len(places) for at in places)
    gate = Gate("trimmed packets behind whole ones", behind, 0, at_most=True)
    told = f"trimmed packets left at places {places} of {count}"
    if not places:
        gate, told = Gate("trimmed packets", 0, 1), "nothing was trimmed"
    cause = "" if gate.open else ": the header has to be there first, in priority 7"
    return told_of(work, "trimmed packets overtake the queue", told + cause, gate, UP)


def again(work: StudentWork) -> TestOutcome:
    bench, most = bench_of(work), limit(work)
    counts = []
    for _ in range(3):
        seen = send(bench, [frame(UP, 900, number=number) for number in range(most + 8)])
        counts.append(len(seen[UP].untrimmed))
        bench.now_ns += 50_000_000
    right = sum(count == most + 1 for count in counts)
    told = f"three bursts, with the queue empty between them: {counts} packets left whole, {most + 1} each have room"
    cause = "" if right == 3 else ": the account must be what really waits, also after trims in between"
    return told_of(work, "every burst finds an empty queue", told + cause, Gate("bursts right", right, 3), UP)


def spared(work: StudentWork) -> TestOutcome:
    """Control packets and short packets keep their bytes; ports don't share an account."""
    count = limit(work) + 6
    control = [frame(UP, 300, CONTROL, number) for number in range(count)]
    seen = send(bench_of(work), control)[UP]
    kept = sum(expected in seen.frames for expected in (read(sent.packed()) for sent in control))
    short = [frame(UP, 40, number=number) for number in range(count)]
    lengths = [out.payload_length for out in send(bench_of(work), short)[UP].frames]
    right = kept + sum(length == 40 for length in lengths)
    gate = Gate("packets right", right, 2 * count)
    told = (
        f"{kept} of {count} control packets left unchanged; short packets say lengths {sorted(set(map(str, lengths)))}"
    )
    cause = "" if gate.open else ": trim DSCP 10 only, and never say that a packet is longer than it is"
    return told_of(work, "control packets are never trimmed, short ones keep their length", told + cause, gate, UP)


def apart(work: StudentWork) -> TestOutcome:
    most = limit(work)
    frames = [frame((UP, DOWN)[number % 2], 900, number=number) for number in range(2 * (most + 6))]
    seen = send(bench_of(work), frames)
    up, down = len(seen[UP].untrimmed), len(seen[DOWN].untrimmed)
    right = (up == most + 1) + (down == most + 3)
    told = f"bursts to two ports at once: {up} and {down} packets left whole, with room for {most + 1} and {most + 3}"
    cause = "" if right == 2 else ": each port has its own account, and its own limit in the table"
    return told_of(work, "ports have accounts apart", told + cause, Gate("ports right", right, 2), UP)


LAB = Exercise(
    name="trim",
    title="Trimming in P4: account, threshold, last hop",
    minutes=150,
    tests=(
        Test("builds", "the controls compile", 1, builds),
        Test("burst", "exactly the rest of a burst is trimmed", 3, burst(UP, 6)),
        Test("cut", "a trimmed frame says its length", 2, cut),
        Test("mark", "trimmed packets have another DSCP", 1, mark(UP, TRIMMED)),
        Test("last-hop", "towards a host, the last hop's DSCP", 1, mark(DOWN, TRIMMED_LAST_HOP)),
        Test("overtake", "trimmed packets overtake", 2, overtakes),
        Test("idle", "an idle port trims nothing", 2, idle, "burst"),
        Test("again", "a second burst is like the first", 2, again),
        Test("apart", "ports have accounts apart", 1, apart),
        Test("spared", "control and short packets are spared", 2, spared, "burst"),
    ),
)
