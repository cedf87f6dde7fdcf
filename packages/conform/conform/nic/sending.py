"""Tests of a requester: a NIC that writes to the tester."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from conform.nic import frames
from conform.nic.bench import Bench, copied, equal
from conform.nic.frames import PSN, TRIMMED, TRIMMED_LASTHOP, WRITES, Packet
from conform.result import Broken, Choice, NotReachable


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


def completed(bench: Bench, wanted: str = "1:success") -> None:
    found = bench.completion()
    if found != wanted:
        raise Broken(f"the completion is {found or 'missing'}, not {wanted}")


def failed(bench: Bench, wait_ms: int | None = None) -> None:
    found = bench.completion(wait_ms)
    if not found or found.endswith(":success"):
        raise Broken(f"the completion is {found or 'missing'}, and must be an error")


def same(packet: Packet, name: str, wanted: object) -> None:
    found = getattr(packet, name)
    if found != wanted:
        raise Broken(f"{name} of {packet} is {found}, not {wanted}")


def kinds(bench: Bench) -> None:
    """First, middle, last; a single packet is an only."""
    for packets in (1, 2, 5):
        for n, packet in enumerate(sent(bench.begin(), packets)):
            wanted = "WRITE_FIRST" if not n else "WRITE_LAST" if n == packets - 1 else "WRITE_MIDDLE"
            if packet.kind != ("WRITE_ONLY" if packets == 1 else wanted):
                raise Broken(f"packet {n} of {packets} is {packet.kind}")


def fields(bench: Bench) -> None:
    """Address, key and length of each packet."""
    for n, packet in enumerate(sent(bench.begin(), 5)):
        same(packet, "va", 0x10000 + n * bench.about.pmtu)
        same(packet, "rkey", 0x1234)
        same(packet, "length", 5 * bench.about.pmtu)


def payload(bench: Bench) -> None:
    """The bytes, also of a message that does not fill its last packet."""
    for size in (1, 3, bench.about.pmtu + 5, 4 * bench.about.pmtu):
        data = bench.begin().post(size=size)
        found = b"".join(packet.payload for packet in bench.data(-(-size // bench.about.pmtu)))
        if found != data:
            raise Broken(f"the {len(found)} bytes that came are not the {size} that were written")


def asks(bench: Bench) -> None:
    """The last packet of the last write asks for an acknowledgement."""
    if not sent(bench.begin(), 3)[-1].ask:
        raise Broken("the last packet does not ask for an acknowledgement")


def fresh(bench: Bench) -> None:
    """No packet that is sent for the first time has RTX."""
    bench.begin().post(8)
    bench.settle()
    first: set[int] = set()
    for packet in bench.of(*WRITES):
        if packet.again and packet.psn not in first:
            raise Broken(f"{packet} has RTX, and was not sent before")
        first.add(packet.psn)


def completes(bench: Bench) -> None:
    """A write completes when it is acknowledged, once."""
    sent(bench.begin(), 3)
    done(bench, 3)
    done(bench, 3)
    completed(bench)
    bench.settle()
    if extra := bench.completions():
        raise Broken(f"two acknowledgements brought a second completion, {extra[0]}")


def not_early(bench: Bench) -> None:
    """A write does not complete while packets are missing."""
    sent(bench.begin(), 3)
    bench.control(bench.to.sack(bench.psn - 1 & PSN, (bench.psn + 1 & PSN, bench.psn + 2 & PSN)), "SACK")
    bench.settle()
    if early := bench.completions():
        raise Broken(f"{early[0]} came before packet 0 was acknowledged")


def completes_by(bench: Bench) -> str:
    """A plain write completes by the SACK, or by the transport acknowledgement."""
    sent(bench.begin(), 3)
    bench.control(bench.to.sack(bench.psn + 2 & PSN), "SACK")
    bench.settle()
    raise Choice(f"a plain write completes by the {'SACK' if bench.completions() else 'transport acknowledgement'}")


def again(bench: Bench, reason: int, n: int = 1, packets: int = 3) -> tuple[Packet, Packet]:
    """A packet and its copy after a NACK."""
    packet = sent(bench.begin(), packets)[n]
    bench.control(bench.to.nack(packet.psn, reason, packet.ev), "NACK", packet.ev)
    copy = bench.expect_data("the packet was refused", lambda p: p.psn == packet.psn and p.again)
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
        packet, copy = again(bench, TRIMMED, n)
        if copy.kind != packet.kind:
            raise Broken(f"the copy of {packet} is {copy.kind}")
        for name in ("va", "rkey", "length", "payload", "msn", "rqmsn"):
            same(copy, name, getattr(packet, name))


def resend_only(bench: Bench) -> None:
    """Only the packet that was refused is sent again."""
    packet, _ = again(bench, TRIMMED, 1, 6)
    bench.settle()
    others = [one for one in bench.of(*WRITES) if one.again and one.psn != packet.psn]
    bench.in_time(packet.t_ns)
    if others:
        raise Broken(f"{others[0]} was sent again, which nothing had asked for")


def resend_once(bench: Bench) -> None:
    """A NACK brings one copy."""
    packet, _ = again(bench, TRIMMED)
    bench.settle()
    copies = [one for one in bench.of(*WRITES) if one.again]
    bench.in_time(packet.t_ns)
    if copies:
        raise Broken(f"one NACK brought a second copy, {copies[0]}")


def resend_elsewhere(bench: Bench) -> None:
    """A copy takes another EV than that of the NACK."""
    for n in (0, 1, 2):
        packet, copy = again(bench, TRIMMED, n)
        if copy.ev == packet.ev:
            raise Broken(f"the copy of {packet} takes EV {packet.ev:#x} again")


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
    bench.begin(psn=0)
    first = told(bench, 12, {5, 8})[0]
    for n in (5, 8):
        bench.expect_data(f"packet {n} is missing", copied(n))
    bench.settle()
    others = [one for one in bench.of(*WRITES) if one.again and one.psn not in (5, 8)]
    bench.in_time(first.t_ns)
    if others:
        raise Broken(f"{others[0]} was sent again, and had arrived")


def oldest(bench: Bench) -> None:
    """The oldest gap first."""
    bench.begin(psn=0)
    first = told(bench, 12, {5, 8})[0]
    order = [bench.expect_data("a packet is missing", lambda p: p.again and p.psn in (5, 8)).psn for _ in range(2)]
    bench.in_time(first.t_ns)
    if order != [5, 8]:
        raise Broken(f"the gaps were sent again in the order {order}")


def ignored(bench: Bench, build: Callable[[Bench], bytes], why: str) -> None:
    """A control packet that must change nothing: no copy comes, and the write completes afterwards."""
    found = sent(bench.begin(), 3)
    bench.control(build(bench), why)
    bench.settle()
    copies = [one for one in bench.of(*WRITES) if one.again]
    bench.in_time(found[0].t_ns)
    if copies:
        raise Broken(f"{copies[0]} was sent again: {why}")
    if early := bench.completions():
        raise Broken(f"{early[0]} came: {why}")
    done(bench, 3)
    completed(bench)


def sealed(bench: Bench, transport: bytes) -> bytes:
    return bench.to.seal(transport, bench.evs[0], "control")


def late_nack(bench: Bench) -> None:
    """A NACK of a packet that is acknowledged."""
    found = sent(bench.begin(), 3)
    bench.control(bench.to.sack(bench.psn + 1 & PSN), "SACK")
    bench.settle()
    bench.control(bench.to.nack(bench.psn, TRIMMED, found[0].ev), "NACK of a packet that has arrived")
    bench.settle()
    copies = [one for one in bench.of(*WRITES) if one.again and one.psn == bench.psn]
    bench.in_time(found[0].t_ns)
    if copies:
        raise Broken("a packet was sent again that was acknowledged")


def future_nack(bench: Bench) -> None:
    ignored(bench, lambda b: b.to.nack(b.psn + 500, TRIMMED, b.evs[0]), "a NACK of a PSN never sent")


def future_sack(bench: Bench) -> None:
    ignored(bench, lambda b: b.to.sack(b.psn + 500), "a SACK of PSNs never sent")


def future_ack(bench: Bench) -> None:
    ignored(bench, lambda b: b.to.acknowledge(b.psn + 500, 1), "an ACK of PSNs never sent")


def bad_icrc(bench: Bench) -> None:
    found = sent(bench.begin(), 3)
    data = sealed(bench, bench.to.acknowledge(bench.psn + 2, 1))
    sack = sealed(bench, bench.to.sack(bench.psn + 2 & PSN))
    for one in (data, sack):
        bench.send(one[:-1] + bytes([one[-1] ^ 0x80]), bench.evs[0], "an acknowledgement with a wrong ICRC")
    bench.settle()
    if early := bench.completions():
        raise Broken(f"{early[0]} came by an acknowledgement with a wrong ICRC")
    assert found


def stranger(bench: Bench) -> None:
    """An acknowledgement for another queue pair."""
    sent(bench.begin(), 3)
    mine = bench.to.qpn
    bench.to.qpn = mine ^ 0x3333
    done(bench, 3)
    bench.settle()
    bench.to.qpn = mine
    if early := bench.completions():
        raise Broken(f"{early[0]} came by an acknowledgement for another queue pair")


def old_sack(bench: Bench) -> None:
    """A SACK that is older than the last one changes nothing."""
    found = sent(bench.begin(), 4)
    bench.control(bench.to.sack(bench.psn + 2 & PSN), "SACK")
    bench.control(bench.to.sack(bench.psn - 1 & PSN, (bench.psn + 1 & PSN,)), "an older SACK")
    bench.settle()
    copies = [one for one in bench.of(*WRITES) if one.again]
    bench.in_time(found[0].t_ns)
    if copies:
        raise Broken(f"{copies[0]} was sent again after an old SACK")


def ended(bench: Bench, transport: bytes, why: str) -> None:
    """A refusal ends the queue pair: an error completion, and nothing is sent any more."""
    bench.control(transport, why)
    failed(bench)
    bench.settle()
    bench.unread.clear()
    bench.control(bench.to.nack(bench.psn, TRIMMED, bench.evs[0]), "NACK after the end")
    bench.never(f"the queue pair has ended by {why}", *WRITES)


def refused(syndrome: int, why: str) -> Callable[[Bench], None]:
    """A test that a NAK with this syndrome ends the queue pair."""

    def test(bench: Bench) -> None:
        sent(bench.begin(), 2)
        ended(bench, bench.to.acknowledge(bench.psn - 1, 0, syndrome), why)

    return test


access = refused(frames.NAK_ACCESS, "NAK Remote Access Error")
invalid = refused(frames.NAK_INVALID, "NAK Invalid Request")
operation = refused(frames.NAK_OPERATION, "NAK Remote Operational Error")


def fatal(bench: Bench) -> None:
    sent(bench.begin(), 2)
    ended(bench, bench.to.nack(bench.psn, frames.UNEXPECTED, bench.evs[0]), "a NACK with reason UNEXP_EVENT")


def timeout_ns(bench: Bench) -> int:
    timers = bench.about.timers
    return timers.unit_ns << timers.timeout


def wait_ms(bench: Bench, timeouts: float) -> int:
    return int(timeout_ns(bench) * timeouts / 1e6) + bench.about.answer_ms


def timer(bench: Bench) -> str:
    """Without any answer, the packet comes again, and not before the local ACK timeout."""
    first = sent(bench.begin(), 1)[0]
    copy = bench.expect_data("no answer came", lambda p: p.again, wait_ms(bench, 4))
    waited = copy.t_ns - first.t_ns
    if waited < 0.5 * timeout_ns(bench):
        raise Broken(
            f"the packet came again after {waited / 1e6:.0f} ms, before the timeout of {timeout_ns(bench) / 1e6:.0f}"
        )
    return f"again after {waited / timeout_ns(bench):.2f} timeouts"


def backoff(bench: Bench) -> str:
    """Linear retries wait one timeout each, exponential ones ever longer."""
    timers = bench.about.timers
    times = [sent(bench.begin(), 1)[0].t_ns]
    for number in range(timers.linear + timers.exponential):
        most = wait_ms(bench, 4 << max(0, number - timers.linear + 1))
        times.append(bench.expect_data("no answer came", lambda p: p.again, most).t_ns)
    waits = [(after - before) / timeout_ns(bench) for before, after in pairwise(times)]
    shown = ", ".join(f"{wait:.2f}" for wait in waits)
    if timers.exponential and timers.linear and waits[-1] < 1.4 * min(waits[:-1]):
        raise Broken(f"the waits before retries are {shown} timeouts: the last is no longer than the others")
    return f"waits of {shown} timeouts"


def exhausted(bench: Bench) -> None:
    """After the last retry the write completes with an error."""
    timers = bench.about.timers
    sent(bench.begin(), 1)
    failed(bench, wait_ms(bench, 4 * (timers.linear + (2 << timers.exponential))))


def no_retry_heard(bench: Bench) -> None:
    """Once everything is acknowledged, no timer sends anything again."""
    sent(bench.begin(), 3)
    done(bench, 3)
    completed(bench)
    bench.unread.clear()
    bench.take(bench.session.clock_ns() + 2 * timeout_ns(bench))
    if copies := bench.of(*WRITES):
        raise Broken(f"{copies[0]} was sent after everything was acknowledged")


def window(bench: Bench) -> None:
    """No PSN beyond the window of the peer, which moves with the cumulative PSN."""
    bench.begin(mpr=1)
    bench.post(200)
    bench.settle()
    bench.settle()
    sent_psns = {one.psn - bench.psn & PSN for one in bench.of(*WRITES)}
    if max(sent_psns) >= 128:
        raise Broken(f"PSN {max(sent_psns)} from the first one was sent into a window of 128")
    if len(sent_psns) < 128:
        raise NotReachable(
            f"the device's congestion window ends after {len(sent_psns)} packets, before that of the peer"
        )
    bench.control(bench.to.sack(bench.psn + 31 & PSN), "SACK of 32 packets")
    bench.expect_data("the window has moved by 32", lambda p: (p.psn - bench.psn & PSN) == 159)
    bench.never("the window ends at 160", *WRITES, where=lambda p: 160 <= (p.psn - bench.psn & PSN) < 1 << 23)


def wrapped(bench: Bench) -> None:
    """PSNs wrap at 2^24."""
    bench.begin(psn=0xFFFFFE)
    found = sent(bench, 4)
    if [one.psn for one in found] != [0xFFFFFE, 0xFFFFFF, 0, 1]:
        raise Broken(f"the PSNs are {[one.psn for one in found]}")
    done(bench, 4)
    completed(bench)


def wrapped_gap(bench: Bench) -> None:
    """A gap across the wrap is repaired."""
    bench.begin(psn=0xFFFFFE)
    told(bench, 6, {1})
    bench.expect_data("packet 1 is missing", lambda p: p.psn == 0xFFFFFF and p.again)


def immediate(bench: Bench) -> None:
    """The immediate is in the last packet."""
    bench.begin().post(3, imm=0xC0FFEE)
    last = bench.data(3)[-1]
    if last.kind != "WRITE_LAST_IMM" or last.imm != 0xC0FFEE:
        raise Broken(f"the last packet of a write with immediate is {last.kind}")


def empty(bench: Bench) -> None:
    """A write with immediate of no bytes is one packet."""
    bench.begin().post(size=0, imm=5)
    packet = bench.data(1)[0]
    if packet.kind != "WRITE_ONLY_IMM" or packet.length or packet.payload:
        raise Broken(f"{packet.kind} of {len(packet.payload)} bytes and length {packet.length} was sent")


def numbers(bench: Bench) -> None:
    """The message number counts all writes; that of writes with immediate counts these."""
    bench.begin()
    found = []
    for number, imm in enumerate((None, 7, None, 8)):
        bench.post(1, number=number, imm=imm)
        psn = bench.psn + number & PSN
        found.append(bench.expect_data("the device sends its write", equal("psn", psn)))
    steps = [one.msn - found[0].msn & 0xFFFF for one in found]
    if steps != [0, 1, 2, 3]:
        raise Broken(f"the message numbers of four writes are {[one.msn for one in found]}")
    if found[3].rqmsn - found[1].rqmsn & 0xFFFF != 1:
        raise Broken(f"rqmsn of two writes with immediate is {found[1].rqmsn} and {found[3].rqmsn}")


def immediate_bound(bench: Bench) -> None:
    """No more writes with immediate in flight than the peer has granted."""
    bench.begin(peer_wimm=2)
    for number in range(4):
        bench.post(1, number=number, imm=number)
    bench.settle()
    count = len({one.psn for one in bench.of("WRITE_ONLY_IMM")})
    if count > 2:
        raise Broken(f"{count} writes with immediate are in flight, and 2 were granted")
    bench.acknowledge(bench.psn + 1 & PSN, 2)
    bench.expect_data("two writes with immediate are complete", lambda p: p.psn == bench.psn + 2 & PSN)


def silence(bench: Bench) -> str:
    """The first step of a device when no answer comes."""
    sent(bench.begin(), 3)
    until = bench.session.clock_ns() + 3 * timeout_ns(bench)
    for _ in range(50):
        packet = bench.take(until)
        if packet is None:
            raise Choice("the device sends nothing for three timeouts")
        if packet.kind == "PROBE" or (packet.kind in WRITES and packet.again):
            raise Choice(
                "the device asks with a probe" if packet.kind == "PROBE" else "the device sends a packet again"
            )
    raise Choice("the device sends something else")


def probes(bench: Bench) -> None:
    """A probe is no packet of the write: it has the first PSN that is not acknowledged, and uses none up."""
    sent(bench.begin(), 3)
    until = bench.session.clock_ns() + 3 * timeout_ns(bench)
    for _ in range(50):
        packet = bench.take(until)
        if packet is None:
            break
        if packet.kind == "PROBE":
            same(packet, "psn", bench.psn)
            return
    raise NotReachable("the device sends no reliability probes")


def several(bench: Bench) -> None:
    """Writes follow each other in PSNs, and complete in order."""
    bench.begin()
    for number in range(1, 5):
        bench.post(2, number=number)
    bench.data(8)
    for number in range(1, 5):
        bench.acknowledge(bench.psn + 2 * number - 1 & PSN, number)
    found = [bench.completion() for _ in range(4)]
    if found != [f"{number}:success" for number in range(1, 5)]:
        raise Broken(f"four writes completed as {found}")
