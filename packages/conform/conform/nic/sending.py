"""Tests of a requester: a NIC that writes to the tester."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from conform.nic import frames
from conform.nic.bench import Bench, Where, copied, equal
from conform.nic.frames import PSN, TRIMMED, TRIMMED_LASTHOP, WRITES, Packet
from conform.result import Choice, NotReachable, must, none


def sent(bench: Bench, packets: int, number: int = 1) -> list[Packet]:
    """A write of so many packets, as the device sends it."""
    bench.post(packets, number=number)
    return bench.data(packets)


def stream(bench: Bench, first: int, packets: int, number: int) -> list[Packet]:
    """Write `number`, whose packets begin at `first`; each is acknowledged as it comes, and the write in the end."""
    bench.post(packets, number=number)
    found = []
    for n in range(packets):
        psn = bench.psn + first + n & PSN
        found.append(bench.expect_data("the device sends its write", equal("psn", psn)))
        bench.arrived = (psn, ())
        bench.control(bench.to.sack(psn, ev=found[-1].ev, answer=0), "SACK", found[-1].ev)
    bench.control(bench.to.acknowledge(bench.psn + first + packets - 1, number), "ACK")
    return found


def done(bench: Bench, packets: int, msn: int = 1) -> None:
    """Acknowledge everything."""
    bench.acknowledge(bench.psn + packets - 1 & PSN, msn)


def failed(bench: Bench, wait_ms: int | None = None) -> None:
    found = bench.completion(wait_ms)
    must(found and not found.endswith(":success"), f"the completion is {found or 'missing'}, and must be an error")


def same(packet: Packet, **wanted: object) -> None:
    for name, value in wanted.items():
        found = getattr(packet, name)
        must(found == value, f"{name} of {packet} is {found}, not {value}")


def no_copies(bench: Bench, since: Packet, why: str, where: Where = lambda _: True) -> None:
    """Expect that no packet has come again, on a machine so fast that the device's timer has not run out."""
    copies = bench.copies(where)
    bench.in_time(since.t_ns)
    none(copies, f"was sent again{why}")


def kinds(bench: Bench) -> None:
    """First, middle, last; a single packet is an only."""
    for packets, wanted in ((1, "ONLY"), (2, "FIRST LAST"), (5, "FIRST MIDDLE MIDDLE MIDDLE LAST")):
        found = " ".join(packet.kind.removeprefix("WRITE_") for packet in sent(bench.begin(), packets))
        must(found == wanted, f"the kinds of {packets} packets are {found}, not {wanted}")


def fields(bench: Bench) -> None:
    """Address, key and length of each packet."""
    for n, packet in enumerate(sent(bench.begin(), 5)):
        same(packet, va=0x10000 + n * bench.about.pmtu, rkey=0x1234, length=5 * bench.about.pmtu)


def payload(bench: Bench) -> None:
    """The bytes, also of a message that does not fill its last packet."""
    for size in (1, 3, bench.about.pmtu + 5, 4 * bench.about.pmtu):
        data = bench.begin().post(size=size)
        found = b"".join(packet.payload for packet in bench.data(-(-size // bench.about.pmtu)))
        must(found == data, f"the {len(found)} bytes that came are not the {size} that were written")


def asks(bench: Bench) -> None:
    """The last packet of the last write asks for an acknowledgement."""
    must(sent(bench.begin(), 3)[-1].ask, "the last packet does not ask for an acknowledgement")


def fresh(bench: Bench) -> None:
    """No packet that is sent for the first time has RTX."""
    bench.begin().post(8)
    bench.settle()
    first: set[int] = set()
    for packet in bench.of(*WRITES):
        must(not packet.again or packet.psn in first, f"{packet} has RTX, and was not sent before")
        first.add(packet.psn)


def completes(bench: Bench) -> None:
    """A write completes when it is acknowledged, once."""
    sent(bench.begin(), 3)
    done(bench, 3)
    done(bench, 3)
    bench.completes()
    bench.incomplete("a second completion by a second acknowledgement")


def not_early(bench: Bench) -> None:
    """A write does not complete while packets are missing."""
    sent(bench.begin(), 3)
    bench.control(bench.to.sack(bench.psn - 1 & PSN, (bench.psn + 1 & PSN, bench.psn + 2 & PSN)), "SACK")
    bench.incomplete("packet 0 is not acknowledged")


def completes_by(bench: Bench) -> str:
    """A plain write completes by the SACK, or by the transport acknowledgement."""
    sent(bench.begin(), 3)
    bench.control(bench.to.sack(bench.psn + 2 & PSN), "SACK")
    bench.settle()
    raise Choice(f"a plain write completes by the {'SACK' if bench.completions() else 'transport acknowledgement'}")


def again(bench: Bench, reason: int = TRIMMED, n: int = 1, packets: int = 3) -> tuple[Packet, Packet]:
    """A packet and its copy after a NACK."""
    packet = sent(bench.begin(), packets)[n]
    copy = bench.refuse(packet, reason)
    bench.in_time(packet.t_ns)
    return packet, copy


def brings(reason: int) -> Callable[[Bench], None]:
    """A test that a NACK with this reason brings the packet again."""

    def test(bench: Bench) -> None:
        again(bench, reason)

    return test


resend, resend_lasthop, again_later = brings(TRIMMED), brings(TRIMMED_LASTHOP), brings(frames.NO_RESOURCE)


def resend_same(bench: Bench) -> None:
    """A copy has the same content."""
    for n in (0, 1, 2):
        packet, copy = again(bench, n=n)
        same(
            copy,
            **{name: getattr(packet, name) for name in ("kind", "va", "rkey", "length", "payload", "msn", "rqmsn")},
        )


def resend_only(bench: Bench) -> None:
    """Only the packet that was refused is sent again."""
    packet, _ = again(bench, packets=6)
    bench.settle()
    no_copies(bench, packet, ", which nothing had asked for", lambda one: one.psn != packet.psn)


def resend_once(bench: Bench) -> None:
    """A NACK brings one copy."""
    packet, _ = again(bench)
    bench.settle()
    no_copies(bench, packet, ": a second copy for one NACK")


def resend_elsewhere(bench: Bench) -> None:
    """A copy takes another EV than that of the NACK."""
    for n in (0, 1, 2):
        packet, copy = again(bench, n=n)
        must(copy.ev != packet.ev, f"the copy of {packet} takes EV {packet.ev:#x} again")


def told(bench: Bench, packets: int, lost: set[int]) -> list[Packet]:
    """Send a SACK that leaves these packets out, and answer probes in the same way."""
    found = sent(bench, packets)
    cack = bench.psn + min(lost) - 1 & PSN
    others = tuple(bench.psn + n & PSN for n in range(min(lost), packets) if n not in lost)
    bench.arrived = (cack, others)
    bench.control(bench.to.sack(cack, others, ev=found[-1].ev, answer=packets - min(lost)), "SACK", found[-1].ev)
    return found


def gaps(bench: Bench) -> None:
    """The specification's example at the sender: exactly 5 and 8 of 12 are sent again."""
    first = told(bench.begin(psn=0), 12, {5, 8})[0]
    for n in (5, 8):
        bench.expect_data(f"packet {n} is missing", copied(n))
    bench.settle()
    no_copies(bench, first, ", and had arrived", lambda one: one.psn not in (5, 8))


def oldest(bench: Bench) -> None:
    """The oldest gap first."""
    first = told(bench.begin(psn=0), 12, {5, 8})[0]
    order = [bench.expect_data("a packet is missing", lambda p: p.again and p.psn in (5, 8)).psn for _ in range(2)]
    bench.in_time(first.t_ns)
    must(order == [5, 8], f"the gaps were sent again in the order {order}")


def ignored(build: Callable[[Bench], bytes], why: str) -> Callable[[Bench], None]:
    """A test of a control packet that must change nothing: no copy comes, and the write completes afterwards."""

    def test(bench: Bench) -> None:
        found = sent(bench.begin(), 3)
        bench.control(build(bench), why)
        bench.settle()
        no_copies(bench, found[0], f": {why}")
        none(bench.completions(), f"came: {why}")
        done(bench, 3)
        bench.completes()

    return test


future_nack = ignored(lambda b: b.to.nack(b.psn + 500, TRIMMED, b.evs[0]), "a NACK of a PSN never sent")
future_sack = ignored(lambda b: b.to.sack(b.psn + 500), "a SACK of PSNs never sent")
future_ack = ignored(lambda b: b.to.acknowledge(b.psn + 500, 1), "an ACK of PSNs never sent")


def late_nack(bench: Bench) -> None:
    """A NACK of a packet that is acknowledged."""
    found = sent(bench.begin(), 3)
    bench.control(bench.to.sack(bench.psn + 1 & PSN), "SACK")
    bench.settle()
    bench.control(bench.to.nack(bench.psn, TRIMMED, found[0].ev), "NACK of a packet that has arrived")
    bench.settle()
    no_copies(bench, found[0], ", which was acknowledged", equal("psn", bench.psn))


def bad_icrc(bench: Bench) -> None:
    sent(bench.begin(), 3)
    for body in (bench.to.acknowledge(bench.psn + 2, 1), bench.to.sack(bench.psn + 2 & PSN)):
        data = bench.to.seal(body, bench.evs[0], "control")
        bench.send(data[:-1] + bytes([data[-1] ^ 0x80]), bench.evs[0], "an acknowledgement with a wrong ICRC")
    bench.incomplete("the acknowledgement's ICRC is wrong")


def stranger(bench: Bench) -> None:
    """An acknowledgement for another queue pair."""
    sent(bench.begin(), 3)
    mine = bench.to.qpn
    bench.to.qpn = mine ^ 0x3333
    done(bench, 3)
    bench.settle()
    bench.to.qpn = mine
    none(bench.completions(), "came by an acknowledgement for another queue pair")


def old_sack(bench: Bench) -> None:
    """A SACK that is older than the last one changes nothing."""
    found = sent(bench.begin(), 4)
    bench.control(bench.to.sack(bench.psn + 2 & PSN), "SACK")
    bench.control(bench.to.sack(bench.psn - 1 & PSN, (bench.psn + 1 & PSN,)), "an older SACK")
    bench.settle()
    no_copies(bench, found[0], " after an old SACK")


def ends(build: Callable[[Bench], bytes], why: str) -> Callable[[Bench], None]:
    """A test that a refusal ends the queue pair: an error completion, and nothing is sent any more."""

    def test(bench: Bench) -> None:
        sent(bench.begin(), 2)
        bench.control(build(bench), why)
        failed(bench)
        bench.settle()
        bench.unread.clear()
        bench.control(bench.to.nack(bench.psn, TRIMMED, bench.evs[0]), "NACK after the end")
        bench.never(f"the queue pair has ended by {why}", *WRITES)

    return test


access = ends(lambda b: b.to.acknowledge(b.psn - 1, 0, frames.NAK_ACCESS), "NAK Remote Access Error")
invalid = ends(lambda b: b.to.acknowledge(b.psn - 1, 0, frames.NAK_INVALID), "NAK Invalid Request")
operation = ends(lambda b: b.to.acknowledge(b.psn - 1, 0, frames.NAK_OPERATION), "NAK Remote Operational Error")
fatal = ends(lambda b: b.to.nack(b.psn, frames.UNEXPECTED, b.evs[0]), "a NACK with reason UNEXP_EVENT")


def timeout_ns(bench: Bench) -> int:
    timers = bench.about.timers
    return timers.unit_ns << timers.timeout


def wait_ms(bench: Bench, timeouts: float) -> int:
    return int(timeout_ns(bench) * timeouts / 1e6) + bench.about.answer_ms


def timer(bench: Bench) -> str:
    """Without any answer, the packet comes again, and not before the local ACK timeout."""
    first = sent(bench.begin(), 1)[0]
    copy = bench.expect_data("no answer came", lambda p: p.again, wait_ms(bench, 4))
    waited = (copy.t_ns - first.t_ns) / timeout_ns(bench)
    must(waited >= 0.5, f"the packet came again after {waited:.2f} timeouts")
    return f"again after {waited:.2f} timeouts"


def backoff(bench: Bench) -> str:
    """Linear retries wait one timeout each, exponential ones ever longer."""
    timers = bench.about.timers
    times = [sent(bench.begin(), 1)[0].t_ns]
    for number in range(timers.linear + timers.exponential):
        most = wait_ms(bench, 4 << max(0, number - timers.linear + 1))
        times.append(bench.expect_data("no answer came", lambda p: p.again, most).t_ns)
    waits = [(after - before) / timeout_ns(bench) for before, after in pairwise(times)]
    shown = f"waits of {', '.join(f'{wait:.2f}' for wait in waits)} timeouts"
    if timers.exponential and timers.linear:
        must(waits[-1] >= 1.4 * min(waits[:-1]), f"{shown} before retries: the last is no longer than the others")
    return shown


def exhausted(bench: Bench) -> None:
    """After the last retry the write completes with an error."""
    timers = bench.about.timers
    sent(bench.begin(), 1)
    failed(bench, wait_ms(bench, 4 * (timers.linear + (2 << timers.exponential))))


def no_retry_heard(bench: Bench) -> None:
    """Once everything is acknowledged, no timer sends anything again."""
    sent(bench.begin(), 3)
    done(bench, 3)
    bench.completes()
    bench.unread.clear()
    bench.take(bench.session.clock_ns() + 2 * timeout_ns(bench))
    none(bench.of(*WRITES), "was sent after everything was acknowledged")


def window(bench: Bench) -> None:
    """No PSN beyond the window of the peer, which moves with the cumulative PSN."""
    bench.begin(mpr=1).post(200)
    bench.settle()
    bench.settle()
    sent_psns = {one.psn - bench.psn & PSN for one in bench.of(*WRITES)}
    must(max(sent_psns) < 128, f"PSN {max(sent_psns)} from the first one was sent into a window of 128")
    if len(sent_psns) < 128:
        raise NotReachable(f"the device's congestion window of {len(sent_psns)} packets is smaller than the peer's")
    bench.control(bench.to.sack(bench.psn + 31 & PSN), "SACK of 32 packets")
    bench.expect_data("the window has moved by 32", lambda p: (p.psn - bench.psn & PSN) == 159)
    bench.never("the window ends at 160", *WRITES, where=lambda p: 160 <= (p.psn - bench.psn & PSN) < 1 << 23)


def wrapped(bench: Bench) -> None:
    """PSNs wrap at 2^24."""
    found = [one.psn for one in sent(bench.begin(psn=0xFFFFFE), 4)]
    must(found == [0xFFFFFE, 0xFFFFFF, 0, 1], f"the PSNs are {found}")
    done(bench, 4)
    bench.completes()


def wrapped_gap(bench: Bench) -> None:
    """A gap across the wrap is repaired."""
    told(bench.begin(psn=0xFFFFFE), 6, {1})
    bench.expect_data("packet 1 is missing", copied(0xFFFFFF))


def immediate(bench: Bench) -> None:
    """The immediate is in the last packet."""
    bench.begin().post(3, imm=0xC0FFEE)
    same(bench.data(3)[-1], kind="WRITE_LAST_IMM", imm=0xC0FFEE)


def empty(bench: Bench) -> None:
    """A write with immediate of no bytes is one packet."""
    bench.begin().post(size=0, imm=5)
    same(bench.data(1)[0], kind="WRITE_ONLY_IMM", length=0, payload=b"")


def numbers(bench: Bench) -> None:
    """The message number counts all writes; that of writes with immediate counts these."""
    bench.begin()
    found = []
    for number, imm in enumerate((None, 7, None, 8)):
        bench.post(1, number=number, imm=imm)
        psn = bench.psn + number & PSN
        found.append(bench.expect_data("the device sends its write", equal("psn", psn)))
    numbers = [one.msn for one in found]
    steps = [number - numbers[0] & 0xFFFF for number in numbers]
    must(steps == [0, 1, 2, 3], f"the message numbers of four writes are {numbers}")
    before, after = found[1].rqmsn, found[3].rqmsn
    must(after - before & 0xFFFF == 1, f"rqmsn of two writes with immediate is {before} and {after}")


def immediate_bound(bench: Bench) -> None:
    """No more writes with immediate in flight than the peer has granted."""
    bench.begin(peer_wimm=2)
    for number in range(4):
        bench.post(1, number=number, imm=number)
    bench.settle()
    count = len({one.psn for one in bench.of("WRITE_ONLY_IMM")})
    must(count <= 2, f"{count} writes with immediate are in flight, and 2 were granted")
    bench.acknowledge(bench.psn + 1 & PSN, 2)
    bench.expect_data("two writes with immediate are complete", equal("psn", bench.psn + 2 & PSN))


def asked(bench: Bench, *kinds: str) -> Packet | None:
    """What a device without any answer sends first of a probe (`PROBE`) and a packet again (`WRITE_…`)."""
    sent(bench.begin(), 3)
    until = bench.session.clock_ns() + 3 * timeout_ns(bench)
    for _ in range(50):
        packet = bench.take(until)
        if packet is None or (packet.kind in kinds and (packet.kind == "PROBE" or packet.again)):
            return packet
    return None


def silence(bench: Bench) -> str:
    """The first step of a device when no answer comes."""
    packet = asked(bench, "PROBE", *WRITES)
    if packet is None:
        raise Choice("the device sends nothing for three timeouts")
    raise Choice("the device asks with a probe" if packet.kind == "PROBE" else "the device sends a packet again")


def probes(bench: Bench) -> None:
    """A probe is no packet of the write: it has the first PSN that is not acknowledged, and uses none up."""
    if (packet := asked(bench, "PROBE")) is None:
        raise NotReachable("the device sends no reliability probes")
    same(packet, psn=bench.psn)


def several(bench: Bench) -> None:
    """Writes follow each other in PSNs, and complete in order."""
    bench.begin()
    for number in range(1, 5):
        bench.post(2, number=number)
    bench.data(8)
    for number in range(1, 5):
        bench.acknowledge(bench.psn + 2 * number - 1 & PSN, number)
    for number in range(1, 5):
        bench.completes(f"{number}:success")
