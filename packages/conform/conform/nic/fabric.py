"""Tests of what a fabric does to packets: trimming, marks, SRv6, dead paths and ports."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from conform.nic import frames, sending
from conform.nic.bench import PORT_STATUS, Bench, Message, answered, copied, equal
from conform.nic.device_file import DeviceFile
from conform.nic.frames import AGAIN, PSN, TRIMMED, TRIMMED_LASTHOP, Packet
from conform.nic.receiving import flipped, nothing, whole
from conform.result import Broken, Choice, NotReachable, must, none

ROUNDS = 4


def nacked(bench: Bench, message: Message, n: int, reason: int, ev: int) -> None:
    psn = message.first + n & PSN
    found = bench.expect("NACK", f"packet {n} arrived trimmed", lambda p: p.nack_psn == psn)
    must(found.reason == reason, f"the NACK's reason is {found.reason:#x}, not {reason:#x}")
    must(found.entropy == ev, f"the NACK of a packet on EV {ev:#x} has EV {found.entropy:#x}")


def trimmed(bench: Bench, lasthop: bool = False, lengths: bool = False, bare: bool = False) -> None:
    """A trimmed packet on every EV is refused, and writes nothing."""
    if not bench.about.trimming:
        raise NotReachable("the device file says that nothing trims")
    message = bench.begin().message(len(bench.evs) + 1)
    for n, ev in enumerate(bench.evs):
        bench.put_trimmed(message, n, ev=ev, lasthop=lasthop, lengths=lengths, bare=bare)
        nacked(bench, message, n, TRIMMED_LASTHOP if lasthop else TRIMMED, ev)
    bench.holds(message, [])


trimmed_lasthop = partial(trimmed, lasthop=True)
trimmed_lengths = partial(trimmed, lengths=True)
trimmed_bare = partial(trimmed, bare=True)
trimmed_bare_lengths = partial(trimmed, bare=True, lengths=True)


def trimmed_then_whole(bench: Bench) -> None:
    """After the NACK, the copy completes the message."""
    message = bench.begin().message(3)
    bench.put(message, 0)
    bench.put_trimmed(message, 1)
    bench.put(message, 2)
    nacked(bench, message, 1, TRIMMED, bench.evs[0])
    bench.put(message, 1, flags=AGAIN)
    whole(bench, message)


def trimmed_copy(bench: Bench) -> None:
    """A trimmed copy of a packet that has arrived is not refused."""
    message = bench.begin().message(2)
    bench.put(message, 0)
    bench.put_trimmed(message, 0)
    bench.never("the packet had arrived", "NACK")
    bench.holds(message, [0])


def trimmed_ahead_copy(bench: Bench) -> None:
    """The same beyond a hole."""
    message = bench.begin().message(3)
    bench.put(message, 1)
    bench.put_trimmed(message, 1)
    bench.never("the packet had arrived", "NACK", where=lambda p: p.nack_psn == message.first + 1 & PSN)


def trimmed_outside(bench: Bench) -> None:
    """A trimmed packet beyond the window is not refused as trimmed."""
    message = bench.begin().message()
    bench.put_trimmed(message, 0, psn=message.first + bench.about.mpr * 128)
    bench.never("the PSN is outside of the window", "NACK", where=lambda p: p.reason in (TRIMMED, TRIMMED_LASTHOP))


def trimmed_qp(bench: Bench) -> None:
    """A trimmed packet for another queue pair is dropped."""
    message = bench.begin().message()
    bench.put_trimmed(message, 0, qpn=bench.to.qpn ^ 0x5555)
    bench.never("the queue pair does not exist", "NACK")


def trimmed_control(bench: Bench) -> None:
    """A control packet that was cut is dropped."""
    sending.sent(bench.begin(), 3)
    for body in (bench.to.sack(bench.psn + 2 & PSN), bench.to.acknowledge(bench.psn + 2 & PSN, 1)):
        data = bench.to.seal(body, bench.evs[0], "control")
        bench.send(frames.with_dscp(data, bench.about.dscp["trimmed"])[:-8], bench.evs[0], "a cut acknowledgement")
    bench.incomplete("the acknowledgement was cut")


def trimmed_no_ack(bench: Bench) -> None:
    """A trimmed packet counts as not received."""
    message = bench.begin().message(2)
    bench.put_trimmed(message, 0)
    bench.put(message, 1)
    bench.expect("SACK", "the last packet asks", lambda p: message.first + 1 & PSN in p.received)
    bench.never("packet 0 arrived trimmed only", "ACKNOWLEDGE", where=lambda p: p.msn > 0)


def each_trimmed(bench: Bench) -> str:
    """How many NACKs three trimmed copies of one packet bring."""
    message = bench.begin().message(2)
    for _ in range(3):
        bench.put_trimmed(message, 0)
    bench.settle()
    raise Choice(f"{len(bench.of('NACK'))} NACKs for three trimmed copies of one packet")


def whole_trimmed_class(bench: Bench) -> None:
    """A packet that a switch would have cut, but that fits, is placed."""
    message = bench.begin().message(size=8)
    bench.put(message, dscp="trimmed", note="a short packet in the class of trimmed packets")
    whole(bench, message)


def marked(bench: Bench) -> None:
    """A mark is answered at once: this EV is to be skipped once."""
    bench.begin()
    for ev in bench.evs:
        message = bench.message(2)
        bench.put(message, 0, ev=ev, marked=True, flags=0)
        found = bench.expect("SACK", "the packet is marked", equal("cack", message.first))
        mark, entropy = found.mark, found.entropy
        must((mark, entropy) == (1, ev), f"the SACK of a mark on EV {ev:#x} has mark {mark} and EV {entropy:#x}")
        bench.put(message, 1)
        bench.settle()
        bench.unread.clear()


def marked_probe(bench: Bench) -> None:
    """A mark on a probe comes back in its answer."""
    found = bench.begin().probe(bench.peer_psn, 77, marked=True).mark
    must(found == 1, f"the answer to a marked probe has the mark {found}")


def rewritten(
    change: Callable[[bytes, DeviceFile], bytes], why: str, *, kept: bool, outer: bool = False
) -> Callable[[Bench], None]:
    """A test of a frame that the fabric has changed, and that must be placed, or dropped."""

    def test(bench: Bench) -> None:
        if outer and bench.about.encapsulation == "none":
            raise NotReachable("the device file says that there is no outer header")
        message = bench.begin().message()
        bench.send(change(bench.frame(message, 0), bench.about), bench.evs[0], why)
        if kept:
            whole(bench, message)
        else:
            nothing(bench, message, why)

    return test


last_hop = rewritten(lambda data, _: data[:21] + b"\x01" + data[22:], "an outer hop limit of 1", kept=True)
relabelled = rewritten(
    lambda data, _: data[:15] + bytes([data[15] & 0xF0 | 5, 1, 2]) + data[18:], "another outer flow label", kept=True
)
foreign_usid = rewritten(
    lambda data, _: data[:42] + b"\x0b\xad" + data[44:], "the outer destination is another NIC", kept=False, outer=True
)
foreign_address = rewritten(
    lambda data, _: flipped(data, frames.ipv6_headers(data)[-1] + 39),
    "the inner destination is another NIC",
    kept=False,
)


def bare(bench: Bench) -> None:
    """A frame without an outer header."""
    message = bench.begin().message()
    bench.put(message, bare=True)
    bench.settle()
    raise Choice(f"a write without an outer header is {'placed' if bench.of('SACK') else 'dropped'}")


def routed(bench: Bench) -> None:
    """A segment routing header behind the outer header."""
    message = bench.begin().message()
    data = bench.frame(message, 0)
    if data[20] != 41:
        raise NotReachable("the device file says that there is no outer header")
    header = struct.pack("!BBBBBBH", 41, 2, 4, 0, 0, 0, 0) + data[38:54]
    length = struct.unpack_from("!H", data, 18)[0] + len(header)
    routed_frame = data[:18] + struct.pack("!H", length) + b"\x2b" + data[21:54] + header + data[54:]
    bench.send(routed_frame, bench.evs[0], "a segment routing header")
    bench.settle()
    raise Choice(f"a write with a segment routing header is {'placed' if bench.of('SACK') else 'dropped'}")


def ev_probe(bench: Bench) -> None:
    """An EV probe is answered with its operation, id and timestamp."""
    bench.begin()
    for n, ev in enumerate(bench.evs):
        number = bench.rng.randrange(0x10000)
        bench.control(frames.request(1, number, 3, 0x1234 + n), "EV probe", ev)
        found = bench.expect("ENDPOINT_RESPONSE", "an EV probe", answered(number))
        sending.same(found, op=1, stamp=0x1234 + n)


def ev_probe_way(bench: Bench) -> str:
    """The way of the answer to an EV probe."""
    bench.begin()
    same = sum(bench.probe_ev(ev).ev == ev for ev in bench.evs)
    raise Choice(f"{same} of {len(bench.evs)} answers to EV probes come on the probe's EV")


def unanswered(why: str, op: int = 1, foreign: bool = False) -> Callable[[Bench], None]:
    """A test that an endpoint request is dropped, because of its operation or because of its queue pair."""

    def test(bench: Bench) -> None:
        qpn = bench.begin().to.qpn if foreign else frames.ENDPOINT_QPN
        bench.control(frames.request(op, 0x4242, 3, 1, qpn=qpn), f"an endpoint request: {why}")
        bench.never(why, "ENDPOINT_RESPONSE", where=answered(0x4242))

    return test


operation_qp = unanswered("endpoint requests go to queue pair 2", foreign=True)
unknown_operation = unanswered("MRC has no operation 3", op=3)


def status(bench: Bench, mask: int) -> None:
    """Tell the device which ports of the tester are up."""
    bench.status_id = getattr(bench, "status_id", 100) + 1  # type: ignore[attr-defined]
    number: int = bench.status_id  # type: ignore[attr-defined]
    bench.control(frames.request(PORT_STATUS, number, mask, 0x77), "port status update", bench.fence_ev)
    found = bench.expect("ENDPOINT_RESPONSE", "a port status update", answered(number))
    sending.same(found, op=PORT_STATUS, stamp=0x77)


def port_status(bench: Bench) -> None:
    two_ports(bench)
    status(bench.begin(), 1)


def two_ports(bench: Bench) -> None:
    if bench.about.ports < 2:
        raise NotReachable("the device file has one port")


def port_down(bench: Bench) -> None:
    """No data to a port that the peer has said is down."""
    two_ports(bench)
    status(bench.begin(), 1)
    none([packet for packet in sending.sent(bench, 16) if packet.port != 1], "leaves by port 2, and the peer's is down")


def port_up(bench: Bench) -> None:
    """Both ports once the peer has said that its port is up again."""
    two_ports(bench)
    status(bench.begin(), 1)
    status(bench, 3)
    ports = {packet.port for packet in sending.sent(bench, 16)}
    must(ports == {1, 2}, f"16 packets use the ports {ports}, and both are up")


def own_port(bench: Bench) -> None:
    """A NIC that loses a port tells the peer, and sends by the other."""
    two_ports(bench)
    bench.begin()
    bench.ask("port number=2 up=0")
    found = bench.expect("ENDPOINT_REQUEST", "a port is down", lambda p: p.op == PORT_STATUS)
    try:
        must(found.mask & 3 == 1, f"the port status mask is {found.mask:#x} with port 2 down")
        none([packet for packet in sending.sent(bench, 8) if packet.port != 1], "leaves by port 2, which is down")
    finally:
        bench.ask("port number=2 up=1")


def rotation(bench: Bench) -> None:
    """Packets that follow each other take different EVs; where one rotation ends and the next begins, two may agree."""
    found = sending.sent(bench.begin(), 16)
    alike = sum(before.ev == after.ev for before, after in pairwise(found))
    must(alike <= 16 // min(8, len(bench.evs)), f"{alike} of 15 packets take the EV of the packet before")


def all_evs(bench: Bench) -> None:
    """All EVs are used, and all planes alike."""
    found = sending.sent(bench.begin(), 8 * len(bench.evs))
    unused = set(bench.evs) - {packet.ev for packet in found}
    must(not unused, f"{len(found)} packets do not use the EVs {', '.join(map(hex, sorted(unused)))}")
    by_port = [sum(packet.port == port for packet in found) for port in range(1, bench.about.ports + 1)]
    must(max(by_port) <= 1.5 * min(by_port), f"{len(found)} packets use the ports {by_port} times")


def unused(packets: list[Packet], ev: int, why: str) -> None:
    """Expect that none of these packets takes an EV."""
    none([packet for packet in packets if packet.ev == ev], f"takes EV {ev:#x}, {why}")


def skipped(bench: Bench) -> None:
    """With all EVs of each port but one marked, the next packet takes one that is not."""
    good: list[int] = []
    bench.begin()
    by_port = {port: [ev for ev in bench.evs if bench.about.evs[ev] == port] for port in bench.about.evs.values()}
    if min(map(len, by_port.values())) < 2:
        raise NotReachable("the device file must have two EVs per port or more")
    sent = 0
    for number in range(1, 2 * ROUNDS + 1):
        found = sending.stream(bench, sent, 1 if good else 4 * len(bench.evs), number)
        sent += len(found)
        must(not good or found[0].ev in good, f"{found[0]} takes EV {found[0].ev:#x}, which was to be skipped once")
        good = [] if good else [bench.rng.choice(evs) for evs in by_port.values()]
        for ev in bench.evs if good else ():
            if ev not in good:
                bench.control(bench.to.sack(found[-1].psn, ev=ev, mark=1), "SACK with a mark")
        bench.settle()


def always_skipped(bench: Bench) -> None:
    """An EV with the mark ALWAYS_SKIP is not used any more."""
    bench.begin()
    first = sending.sent(bench, 8)
    ev = first[3].ev
    bench.acknowledge(bench.psn + 7 & PSN, 1, ev=ev, mark=2)
    bench.settle()
    bench.dead_evs.add(ev)
    unused(sending.stream(bench, 8, 4 * len(bench.evs), 2), ev, "which was to be skipped always")


def lost(bench: Bench) -> int:
    """All packets of an EV are lost without a trim; returns the EV."""
    bench.begin()
    found = sending.sent(bench, 12)
    ev: int = found[5].ev
    bench.dead_evs.add(ev)
    missing = [one for one in found if one.ev == ev]
    cack = missing[0].psn - 1 & PSN
    others = tuple(one.psn for one in found if one.ev != ev and 0 < (one.psn - cack & PSN) < 64)
    last = [one for one in found if one.ev != ev][-1]
    bench.arrived = (cack, others)
    bench.control(bench.to.sack(cack, others, ev=last.ev, answer=last.psn - cack & PSN), "SACK", last.ev)
    for n, one in enumerate(missing):
        copy = bench.expect_data(f"{one} is missing", copied(one.psn))
        bench.arrived = None  # an answer sooner than any before it could be the original's
        bench.drain(copy.t_ns + sending.timeout_ns(bench) // 16)
        cack = (missing[n + 1].psn - 1 if missing[n + 1 :] else found[-1].psn) & PSN
        others = tuple(psn for psn in others if 0 < (psn - cack & PSN) < 64)
        bench.arrived = (cack, others)
        back = (one.psn - cack + (1 << 23) & PSN) - (1 << 23)
        bench.control(bench.to.sack(cack, others, ev=copy.ev, answer=back), "SACK of a copy", copy.ev)
    bench.in_time(found[0].t_ns)
    bench.control(bench.to.acknowledge(found[-1].psn, 1), "ACK", last.ev)
    return ev


def lost_ev(bench: Bench) -> None:
    """The EV of a packet that was lost and not trimmed is left at once."""
    ev = lost(bench)
    bench.settle()
    unused(sending.stream(bench, 12, 8 * len(bench.evs), 2), ev, "on which a packet was lost")


def lost_probed(bench: Bench) -> None:
    """An EV that was left is probed in the background."""
    ev = lost(bench)
    bench.expect("PROBE", f"EV {ev:#x} was left", lambda p: p.ev == ev, wait_ms=2 * bench.about.answer_ms)


def revived(bench: Bench) -> None:
    """An EV whose probes are answered is used again."""
    ev = lost(bench)
    bench.dead_evs.clear()
    for number in range(2, 60):
        bench.take(bench.session.clock_ns() + 50_000_000)
        if ev in [packet.ev for packet in sending.stream(bench, 8 * number - 4, 8, number)]:
            return
    raise Broken(f"EV {ev:#x} was not used again, although its probes were answered")


def trimmed_ev_kept(bench: Bench) -> None:
    """A trim is congestion and no failure: its EV is used again."""
    bench.begin()
    found = sending.sent(bench, 4)
    bench.refuse(found[1])
    bench.acknowledge(found[-1].psn, 1)
    used = {packet.ev for packet in sending.stream(bench, 4, 6 * len(bench.evs), 2)}
    must(found[1].ev in used, f"EV {found[1].ev:#x} was left after a trim")
