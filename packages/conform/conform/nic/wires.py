"""Tests of single frames: properties of every frame that a device sends.

Each rule looks at the frames of one exchange that has all kinds a device sends.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

from conform.nic import frames, sending
from conform.nic.bench import Bench
from conform.nic.device_file import mac
from conform.nic.frames import WRITES, Packet, ipv6_headers, packed
from conform.result import Choice, NotReachable, must

CONTROL = ("SACK", "NACK", "ACKNOWLEDGE", "ENDPOINT_REQUEST", "ENDPOINT_RESPONSE")
LEGAL = (*WRITES, *CONTROL, "PROBE")
Test = Callable[[Bench], str | None]
Wrong = Callable[[Packet, Bench], str | None]


def exchange(bench: Bench) -> list[Packet]:
    """A write each way, a trimmed packet, a mark, a probe, a retransmission and an EV probe."""
    bench.begin(receives=1)
    message, second = bench.message(3), bench.message(2)
    for n in range(3):
        bench.put(message, n, ev=bench.evs[n % len(bench.evs)], marked=n == 1)
    bench.put_trimmed(second, 0)
    bench.put(second, 1)
    bench.put_probe(second.first, 9)
    bench.refuse(sending.sent(bench, 4)[1])
    bench.settle()
    sending.done(bench, 4)
    if not bench.seen:
        raise NotReachable("the device has sent no frame")
    return bench.seen


def each(kinds: Iterable[str], wrong: Wrong) -> Test:
    """A test of every frame of these kinds: `wrong` says what is wrong with a frame."""
    wanted = tuple(kinds)

    def test(bench: Bench) -> None:
        found = [packet for packet in exchange(bench) if packet.kind in wanted]
        if not found:
            raise NotReachable(f"the device has sent no {' or '.join(wanted)}")
        for packet in found:
            why = wrong(packet, bench)
            must(not why, f"{packet}: {why}")

    return test


def chosen(found: Callable[[Packet], str | None]) -> Test:
    """A test that records what a device chooses, over all frames."""

    def test(bench: Bench) -> None:
        raise Choice(", ".join(sorted({said for packet in exchange(bench) if (said := found(packet))})) or "nothing")

    return test


def unequal(name: str, found: object, wanted: object) -> str | None:
    return None if found == wanted else f"{name} is {found}, not {wanted}"


def size(kind: str, behind: int) -> Test:
    """A test of a frame's bytes from the BTH to the ICRC; `behind` are those behind the BTH."""
    return each([kind], lambda p, _: unequal("the bytes from the BTH on", len(p.data) - p.bth, 12 + behind + 4))


def alike(name: str, shift: int, mask: int) -> Test:
    """A test that both IPv6 headers agree on some bits of their first word."""

    def wrong(packet: Packet, _: Bench) -> str | None:
        data = packet.data
        found = {struct.unpack_from("!I", data, at)[0] >> shift & mask for at in ipv6_headers(data)}
        return None if len(found) == 1 else f"the {name} of the two headers are {found}"

    return each(WRITES, wrong)


def readable(bench: Bench) -> None:
    """Every frame can be taken apart."""
    for packet in exchange(bench):
        must(not packet.fault, f"a frame of {len(packet.data)} bytes cannot be read: {packet.fault}")


def opcodes(bench: Bench) -> None:
    """The opcodes are MRC's."""
    for packet in exchange(bench):
        must("not a valid Opcode" not in packet.fault, f"MRC has no such opcode: {packet.fault}")


def _outer(packet: Packet, bench: Bench) -> str | None:
    outer = packet.outside.outer
    if bench.about.encapsulation == "none":
        return "there is an outer header" if outer else None
    if outer is None:
        return "there is no outer header"
    return unequal("the outer destination", outer[1].hex(), packed(bench.about.tester.usid_address).hex())


def _macs(packet: Packet, bench: Bench) -> str | None:
    ends = [mac(end.macs[packet.port - 1]) for end in (bench.about.tester, bench.about.device)]
    return unequal("the MACs", packet.data[:12].hex(), b"".join(ends).hex())


def _addresses(packet: Packet, bench: Bench) -> str | None:
    ends = bench.about.device.packed, bench.about.tester.packed
    return unequal("the inner addresses", (packet.outside.src, packet.outside.dst), ends)


def _queue_pair(packet: Packet, bench: Bench) -> str | None:
    return unequal("the queue pair", packet.qpn, frames.ENDPOINT_QPN if packet.kind.startswith("END") else bench.qpn)


def _data_class(packet: Packet, bench: Bench) -> str | None:
    return None if packet.again else unequal("the DSCP", packet.dscp, bench.about.dscp["trimmable"])


def _hop_limit(packet: Packet, _: Bench) -> str | None:
    least = min(packet.data[at + 7] for at in ipv6_headers(packet.data))
    return None if least >= 8 else f"a hop limit of {least} does not cross a fabric of three tiers"


def _checksum(packet: Packet) -> str | None:
    found = not packet.fault and struct.unpack_from("!H", packet.data, packet.bth - 2)[0]
    return None if packet.fault else f"the UDP checksum is {'not ' if found else ''}0"


def _again_class(packet: Packet) -> str | None:
    return f"DSCP {packet.dscp} of packets sent again" if packet.kind in WRITES and packet.again else None


icrc = each(LEGAL, lambda p, _: None if frames.icrc_right(p) else "the ICRC is wrong")
checksum = chosen(_checksum)
hop_limit = each(LEGAL, _hop_limit)
outer_length = each(
    LEGAL, lambda p, _: unequal("the outer length", struct.unpack_from("!H", p.data, 18)[0], len(p.data) - 54)
)
inner_length = each(LEGAL, lambda p, _: unequal("the inner packet's end", p.outside.end, len(p.data)))
udp_length = each(LEGAL, lambda p, _: unequal("the UDP datagram's end", p.outside.udp_end, len(p.data)))
encapsulated = each(LEGAL, _outer)
addresses = each(LEGAL, _addresses)
macs = each(LEGAL, _macs)
udp_port = each(LEGAL, lambda p, bench: unequal("the UDP port", p.outside.udp_dport, bench.about.udp_port))
version = each(LEGAL, lambda p, _: unequal("TVer", p.data[p.bth + 1] & 0x0F, 0))
partition = each(LEGAL, lambda p, _: unequal("the P_Key", p.p_key & 0x7FFF, 0x7FFF))
queue_pair = each(LEGAL, _queue_pair)
flags = each(LEGAL, lambda p, _: unequal("the reserved bits of BTH byte 8", p.flags & 0x4F, 0))
control_class = each(CONTROL, lambda p, bench: unequal("the DSCP", p.dscp, bench.about.dscp["control"]))
data_class = each(WRITES, _data_class)
retransmit_class = chosen(_again_class)
ecn = each(WRITES, lambda p, _: None if p.ecn in (1, 2) else f"the ECN field is {p.ecn}, so no switch can mark it")
classes = alike("traffic classes", 20, 0xFF)
labels = alike("flow labels", 0, 0xFFFFF)
known_ev = each(WRITES, lambda p, bench: None if p.ev in bench.evs else f"EV {p.ev:#x} is none of the queue pair's")
port_of_ev = each(WRITES, lambda p, bench: unequal(f"the port of EV {p.ev:#x}", p.port, bench.about.evs.get(p.ev)))
sack_psn = each(["SACK"], lambda p, _: unequal("BTH.PSN", p.psn, p.cack))
nack_psn = each(["NACK"], lambda p, _: unequal("BTH.PSN", p.psn, p.nack_psn))
sack_type = each(["SACK"], lambda p, _: unequal("cc_type", p.cc_type, 0))
nack_type = each(["NACK"], lambda p, _: unequal("cc_type", p.cc_type, 2))
sack_size, nack_size = size("SACK", 28 + 8), size("NACK", 20)
ack_size, response_size = size("ACKNOWLEDGE", 4), size("ENDPOINT_RESPONSE", 36)
credit = each(["ACKNOWLEDGE"], lambda p, _: unequal("the syndrome", p.syndrome, frames.ACK))
mpr_field = chosen(lambda p: f"mpr {p.mpr} in SACKs" if p.kind == "SACK" else None)
mark_reserved = each(["SACK"], lambda p, _: "the mark 3 is reserved" if p.mark == 3 else None)


def pad(bench: Bench) -> None:
    """The pad fills the payload to four bytes, and all packets of a message but the last are full."""
    bench.begin().post(size=3 * bench.about.pmtu + 5)
    for n, packet in enumerate(bench.data(4)):
        why = unequal("the payload", len(packet.payload), bench.about.pmtu if n < 3 else 5)
        why = why or unequal("the pad", packet.pad, -len(packet.payload) % 4)
        must(not why, f"{packet}: {why}")


full = pad
