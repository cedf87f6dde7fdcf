"""Tests of single frames: what every frame of a device must be like, whatever it is about.

Each rule looks at the frames of one exchange that has all kinds a device sends.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

from conform.nic import frames, sending
from conform.nic.bench import Bench
from conform.nic.device_file import mac
from conform.nic.frames import PSN, TRIMMED, WRITES, Packet, packed
from conform.result import Broken, Choice, NotReachable

CONTROL = ("SACK", "NACK", "ACKNOWLEDGE", "ENDPOINT_REQUEST", "ENDPOINT_RESPONSE")
LEGAL = (*WRITES, *CONTROL, "PROBE")


def exchange(bench: Bench) -> list[Packet]:
    """A write each way, a trimmed packet, a mark, a probe, a retransmission and an EV probe."""
    bench.open(receives=1)
    message, second = bench.message(3), bench.message(2)
    for n in range(3):
        bench.put(message, n, ev=bench.evs[n % len(bench.evs)], marked=n == 1)
    bench.put_trimmed(second, 0)
    bench.put(second, 1)
    bench.send(bench.to.seal(bench.to.probe(second.first, 9), bench.evs[0], "trimmable"), bench.evs[0], "probe")
    found = sending.sent(bench, 4)
    bench.control(bench.to.nack(found[1].psn, TRIMMED, found[1].ev), "NACK")
    bench.expect_data("the packet was refused", lambda p: p.again)
    bench.settle()
    bench.acknowledge(bench.psn + 3 & PSN, 1)
    if not bench.seen:
        raise NotReachable("the device has sent no frame")
    return bench.seen


def each(bench: Bench, kinds: Iterable[str], wrong: Callable[[Packet], str | None]) -> None:
    """Raises `Broken` for the first frame of these kinds with which something is wrong."""
    kinds = tuple(kinds)
    found = [packet for packet in exchange(bench) if packet.kind in kinds]
    if not found:
        raise NotReachable(f"the device has sent no {' or '.join(kinds)}")
    for packet in found:
        if why := wrong(packet):
            raise Broken(f"{packet}: {why}")


def unequal(name: str, found: object, wanted: object) -> str | None:
    return None if found == wanted else f"{name} is {found}, not {wanted}"


def readable(bench: Bench) -> None:
    """Every frame can be taken apart."""
    for packet in exchange(bench):
        if packet.fault:
            raise Broken(f"a frame of {len(packet.data)} bytes cannot be read: {packet.fault}")


def opcodes(bench: Bench) -> None:
    """The opcodes are MRC's."""
    for packet in exchange(bench):
        if "not a valid Opcode" in packet.fault:
            raise Broken(f"MRC has no such opcode: {packet.fault}")


def icrc(bench: Bench) -> None:
    each(bench, LEGAL, lambda p: None if frames.icrc_right(p) else "the ICRC is wrong")


def checksum(bench: Bench) -> str:
    """The UDP checksum."""
    found = {struct.unpack_from("!H", p.data, p.outside.bth - 2)[0] for p in exchange(bench) if not p.fault}
    raise Choice("the UDP checksum is 0" if found == {0} else "the UDP checksum is not 0")


def hop_limit(bench: Bench) -> None:
    def wrong(packet: Packet) -> str | None:
        limits = [packet.data[at + 7] for at in frames.ipv6_headers(packet.data)]
        return None if min(limits) >= 8 else f"a hop limit of {min(limits)} does not cross a fabric of three tiers"

    each(bench, LEGAL, wrong)


def outer_length(bench: Bench) -> None:
    each(
        bench, LEGAL,
        lambda p: unequal("the first IPv6 header's length", struct.unpack_from("!H", p.data, 18)[0], len(p.data) - 54),
    )  # fmt: skip


def inner_length(bench: Bench) -> None:
    each(bench, LEGAL, lambda p: unequal("the inner packet's end", p.outside.end, len(p.data)))


def udp_length(bench: Bench) -> None:
    each(bench, LEGAL, lambda p: unequal("the UDP datagram's end", p.outside.udp_end, len(p.data)))


def encapsulated(bench: Bench) -> None:
    """With SRv6 there is an outer header to the uSIDs of the peer; without, none."""
    about = bench.about

    def wrong(packet: Packet) -> str | None:
        outer = packet.outside.outer
        if about.encapsulation == "none":
            return "there is an outer header" if outer else None
        if outer is None:
            return "there is no outer header"
        return unequal("the outer destination", outer[1].hex(), packed(about.tester.usid_address).hex())

    each(bench, LEGAL, wrong)


def addresses(bench: Bench) -> None:
    """The inner addresses are those of the two NICs."""
    ends = (bench.about.device.packed, bench.about.tester.packed)
    each(bench, LEGAL, lambda p: unequal("the inner addresses", (p.outside.src, p.outside.dst), ends))


def macs(bench: Bench) -> None:
    """The MACs are those of the port and of its neighbour."""

    def wrong(packet: Packet) -> str | None:
        about = bench.about
        ends = mac(about.tester.macs[packet.port - 1]) + mac(about.device.macs[packet.port - 1])
        return unequal("the MACs", packet.data[:12].hex(), ends.hex())

    each(bench, LEGAL, wrong)


def udp_port(bench: Bench) -> None:
    each(bench, LEGAL, lambda p: unequal("the UDP port", p.outside.udp_dport, bench.about.udp_port))


def version(bench: Bench) -> None:
    each(bench, LEGAL, lambda p: unequal("TVer", p.data[p.bth + 1] & 0x0F, 0))


def partition(bench: Bench) -> None:
    each(bench, LEGAL, lambda p: unequal("the P_Key", p.p_key & 0x7FFF, 0x7FFF))


def queue_pair(bench: Bench) -> None:
    """The destination is the peer's queue pair; endpoint operations go to queue pair 2."""
    each(
        bench, LEGAL,
        lambda p: unequal("the queue pair", p.qpn, frames.ENDPOINT_QPN if p.kind.startswith("END") else bench.qpn),
    )  # fmt: skip


def flags(bench: Bench) -> None:
    """The reserved bits of BTH byte 8 are 0."""
    each(bench, LEGAL, lambda p: unequal("the reserved bits of BTH byte 8", p.flags & 0x4F, 0))


def control_class(bench: Bench) -> None:
    each(bench, CONTROL, lambda p: unequal("the DSCP", p.dscp, bench.about.dscp["control"]))


def data_class(bench: Bench) -> None:
    def wrong(packet: Packet) -> str | None:
        return None if packet.again else unequal("the DSCP", packet.dscp, bench.about.dscp["trimmable"])

    each(bench, WRITES, wrong)


def retransmit_class(bench: Bench) -> str:
    """The class of a packet that is sent again."""
    found = {packet.dscp for packet in exchange(bench) if packet.kind in WRITES and packet.again}
    names = [name for name, dscp in bench.about.dscp.items() if dscp in found]
    raise Choice(f"packets that are sent again have the DSCP {', '.join(names) or found}")


def ecn(bench: Bench) -> None:
    """Data can be marked: ECN is ECT."""
    each(bench, WRITES, lambda p: None if p.ecn in (1, 2) else f"the ECN field is {p.ecn}, so no switch can mark it")


def classes(bench: Bench) -> None:
    """The traffic class is the same in both headers."""

    def wrong(packet: Packet) -> str | None:
        found = {struct.unpack_from("!I", packet.data, at)[0] >> 20 & 0xFF for at in frames.ipv6_headers(packet.data)}
        return None if len(found) == 1 else f"the traffic classes of the two headers are {found}"

    each(bench, WRITES, wrong)


def labels(bench: Bench) -> None:
    """The flow label is the same in both headers."""

    def wrong(packet: Packet) -> str | None:
        found = {struct.unpack_from("!I", packet.data, at)[0] & 0xFFFFF for at in frames.ipv6_headers(packet.data)}
        return None if len(found) == 1 else f"the flow labels of the two headers are {found}"

    each(bench, WRITES, wrong)


def known_ev(bench: Bench) -> None:
    each(bench, WRITES, lambda p: None if p.ev in bench.evs else f"EV {p.ev:#x} is none of the queue pair's")


def port_of_ev(bench: Bench) -> None:
    each(bench, WRITES, lambda p: unequal(f"the port of EV {p.ev:#x}", p.port, bench.about.evs.get(p.ev)))


def pad(bench: Bench) -> None:
    """The pad fills the payload to four bytes."""
    bench.open().post(size=bench.about.pmtu + 5)
    for packet in bench.data(2):
        if why := unequal("the pad", packet.pad, -len(packet.payload) % 4):
            raise Broken(f"{packet}: {why}")


def full(bench: Bench) -> None:
    """All packets of a message but the last are full."""
    bench.open().post(size=3 * bench.about.pmtu + 9)
    for packet in bench.data(4)[:-1]:
        if why := unequal("the payload", len(packet.payload), bench.about.pmtu):
            raise Broken(f"{packet}: {why}")


def sack_psn(bench: Bench) -> None:
    each(bench, ["SACK"], lambda p: unequal("BTH.PSN", p.psn, p.cack))


def nack_psn(bench: Bench) -> None:
    each(bench, ["NACK"], lambda p: unequal("BTH.PSN", p.psn, p.nack_psn))


def sack_type(bench: Bench) -> None:
    each(bench, ["SACK"], lambda p: unequal("cc_type", p.cc_type, 0))


def nack_type(bench: Bench) -> None:
    each(bench, ["NACK"], lambda p: unequal("cc_type", p.cc_type, 2))


def sack_size(bench: Bench) -> None:
    """A SACK is BTH, SETH, congestion state and ICRC."""
    each(bench, ["SACK"], lambda p: unequal("the bytes from the BTH on", len(p.data) - p.bth, 12 + 28 + 8 + 4))


def nack_size(bench: Bench) -> None:
    each(bench, ["NACK"], lambda p: unequal("the bytes from the BTH on", len(p.data) - p.bth, 12 + 20 + 4))


def ack_size(bench: Bench) -> None:
    each(bench, ["ACKNOWLEDGE"], lambda p: unequal("the bytes from the BTH on", len(p.data) - p.bth, 12 + 4 + 4))


def response_size(bench: Bench) -> None:
    each(bench, ["ENDPOINT_RESPONSE"], lambda p: unequal("the bytes from the BTH on", len(p.data) - p.bth, 12 + 36 + 4))


def credit(bench: Bench) -> None:
    each(bench, ["ACKNOWLEDGE"], lambda p: unequal("the syndrome", p.syndrome, frames.ACK))


def mpr_field(bench: Bench) -> str:
    found = {packet.mpr for packet in exchange(bench) if packet.kind == "SACK"}
    raise Choice(f"SACKs have mpr {', '.join(map(str, sorted(found)))}")


def mark_reserved(bench: Bench) -> None:
    each(bench, ["SACK"], lambda p: "the mark 3 is reserved" if p.mark == 3 else None)
