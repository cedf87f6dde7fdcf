"""Packet sampling: one data packet in so many as both ends of a connection saw it, as `sampled` lines of the journal.

A host writes when it sends such a packet, when one arrives, and when its answer comes. Both ends choose by the PSN, so
that they choose the same packets without a word; a byte of each frame is looked at, and nothing more. What happened
inside the fabric is not seen: an EV names the path, and the times at both ends bound the rest.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from struct import Struct
from typing import Any, Final

from endpoint.decoder import Decoder, acknowledges
from endpoint.nic import frame as frames
from endpoint.nic import wire
from endpoint.nic.dialect import named
from endpoint.nic.wire import PSN_HALF, PSN_MASK
from endpoint.profile import NicProfile
from endpoint.roce import wire as roce

ONE_IN: Final = 256
"""Of the PSNs of each queue pair; a power of two up to 256, because the lowest byte decides."""
OPEN_MAX: Final = 256
"""Packets that wait for their answer; the oldest are forgotten first."""
QPS_UNLOOKED = 1024
"""Queue pairs beyond twice the living ones that may be remembered: then those that were destroyed are looked for."""
HEAD_BYTES: Final = 160
PSN_BYTE: Final = 11
"""Of a BTH: the lowest byte of the PSN."""
LINES_MAX: Final = 2000
"""In a second: a flood of frames that look sampled must not fill the host's disk."""
SECOND_NS: Final = 1_000_000_000
SOURCE_BYTE: Final = 8
"""Of an IPv6 header: where its source address begins."""
DATA: Final = frozenset([*map(int, wire.WRITES), *map(int, roce.WRITES)])
SACK: Final = int(wire.Opcode.SACK)
ANSWERS: Final = frozenset((SACK, int(wire.Opcode.NACK)))
SACK_LOOK: Final = Struct("!16s28xI4x2xhI4xI2xhQ")
"""Of a SACK, from its IPv6 source address on: that, the BTH's QP, and what the SETH says of packets."""

Journal = Callable[[int, str, Mapping[str, Any]], None]
Buffer = bytes | memoryview


class PacketSampler:
    """Looks at the frames of one host."""

    def __init__(
        self, profile: NicProfile, journal: Journal, living: Callable[[], Set[int]], dialect: str = ""
    ) -> None:
        """`living` gives the numbers of the host's queue pairs; `dialect` is that setting (`endpoint.nic.dialect`)."""
        self._journal = journal
        self._living = living
        read = named(dialect)
        self._profile = profile
        trimmed = (profile.dscp.trimmed, profile.dscp.trimmed_lasthop)
        self._decode = Decoder(profile.names, trimmed, profile.udp_port, read).fields
        self._bth = frames.ETHERNET + frames.IPV6 + frames.UDP + (
            frames.IPV6 if profile.encapsulation == "srv6" else 0
        )  # fmt: skip
        self._source = self._bth - frames.UDP - frames.IPV6 + SOURCE_BYTE
        self._open: dict[bytes, dict[tuple[int, int], int]] = {}
        """Of what was sent and is not answered, by the peer's address: the peer's QP and PSN, with the EV."""
        self._qps: dict[tuple[bytes, int], int] = {}
        """Peer and own QP: the peer's QP, which a SACK does not name."""
        self._qps_max = QPS_UNLOOKED
        self._second_ns = self._lines = 0

    def joined(self, peer: str, own: int, qpn: int) -> None:
        """A queue pair of this host is connected to that one. Others are learned from SACKs that tell their cause."""
        self._learn(self._address(peer), own, qpn)

    def _address(self, peer: str) -> bytes:
        return self._profile.destinations[peer].address.packed

    def forget_destroyed(self) -> None:
        """Forget the host's queue pairs that are gone, and their packets that wait for an answer."""
        living = self._living()
        gone = [key for key in self._qps if key[1] not in living]
        qpns = {(key[0], self._qps.pop(key)) for key in gone}
        for peer, there in list(self._open.items()):
            for qpn, psn in list(there):
                if (peer, qpn) in qpns:
                    del there[qpn, psn]
            if not there:
                del self._open[peer]
        self._qps_max = 2 * len(living) + QPS_UNLOOKED

    def _learn(self, peer: bytes, own: int, qpn: int) -> None:
        self._qps[peer, own] = qpn
        if len(self._qps) > self._qps_max:
            self.forget_destroyed()

    def sent(self, outgoing: Sequence[tuple[int, bytes]], now_ns: int) -> None:
        """Frames that are handed to the ports."""
        bth, mask = self._bth, ONE_IN - 1
        low = bth + PSN_BYTE
        for port, frame in outgoing:
            if len(frame) > low and not frame[low] & mask and frame[bth] in DATA:
                seen = self._decode(frame[:HEAD_BYTES])
                if seen["psn"] is None or seen["dst"] not in self._profile.destinations:
                    continue
                self._write(now_ns, "sent", seen["dst"], port, len(frame) + frames.left_out(frame), seen)
                there = self._open.setdefault(self._address(seen["dst"]), {})
                there[int(seen["qpn"]), int(seen["psn"])] = int(seen["ev"])
                if len(there) > OPEN_MAX:
                    del there[next(iter(there))]

    def received(self, port: int, incoming: Sequence[Buffer], now_ns: int) -> None:
        """Frames that have arrived, and are still to be handed to the transport."""
        bth, mask = self._bth, ONE_IN - 1
        low, waiting = bth + PSN_BYTE, self._open
        for frame in incoming:
            if len(frame) <= low:
                continue
            if not frame[low] & mask and frame[bth] in DATA:
                seen = self._decode(bytes(frame[:HEAD_BYTES]))
                if seen["psn"] is not None and seen["src"] is not None:
                    self._write(now_ns, "received", seen["src"], port, len(frame) + frames.left_out(frame), seen)
            elif waiting and frame[bth] in ANSWERS and self._may_close(frame):
                self._answered(port, bytes(frame[:HEAD_BYTES]), now_ns)

    def _may_close(self, frame: Buffer) -> bool:
        """A first look at an answer: a NACK, or a SACK, which nearly always speaks of other packets."""
        source = self._source
        if frame[self._bth] != SACK:
            return bytes(frame[source : source + 16]) in self._open
        if len(frame) < source + SACK_LOOK.size:
            return False
        peer, own, cause, entropy, cumulative, offset, bitmap = SACK_LOOK.unpack_from(frame, source)
        there = self._open.get(peer)
        if there is None:
            return False
        known = self._qps.get((peer, own & 0xFFFFFF))
        for (qpn, psn), ev in there.items():
            ahead = psn - cumulative & PSN_MASK
            if known is None:
                if ev == entropy and ahead == cause & PSN_MASK:
                    return True
            elif known == qpn:
                bit = ahead - offset & PSN_MASK
                if ahead == 0 or ahead > PSN_HALF or (bit < wire.SACK_BITS and bitmap >> bit & 1):
                    return True
        return False

    def _answered(self, port: int, head: bytes, now_ns: int) -> None:
        """A SACK or NACK of a peer: the open packets that it reports are closed."""
        peer = head[self._source : self._source + 16]
        there = self._open[peer]
        seen = self._decode(head)
        if seen["cause_psn"] is None and seen["sacked"] is None:
            return  # cut, or none of the transport's
        for (qpn, psn), ev in list(there.items()):
            causing = seen["cause_psn"] == psn and seen["echo_ev"] == ev
            if causing:
                self._learn(peer, seen["qpn"], qpn)
            if seen["op"] == "NACK":
                if not causing:
                    continue
            elif self._qps.get((peer, seen["qpn"])) != qpn or not acknowledges(seen, psn):
                continue
            there.pop((qpn, psn), None)
            fields = {"qp": qpn, "psn": psn, "ev": ev, "op": seen["op"], "answer_ev": seen["ev"]}
            more = {"cumulative_psn": seen["psn"], "sacked": seen["sacked"]} if seen["op"] == "SACK" else {}
            self._journal(now_ns, "sampled", {"what": "answered", "peer": seen["src"], "port": port, **fields, **more})
        if not there:
            self._open.pop(peer, None)

    def _write(self, now_ns: int, what: str, peer: str, port: int, length: int, seen: Mapping[str, Any]) -> None:
        if now_ns - self._second_ns >= SECOND_NS:
            self._second_ns, self._lines = now_ns, 0
        self._lines += 1
        if self._lines > LINES_MAX:
            return
        fields = {name: seen[name] for name in ("psn", "ev", "op", "va", "payload", "retransmission")}
        marks = {name: True for name in ("marked", "trimmed") if seen[name]}
        head = {"what": what, "peer": peer, "port": port, "bytes": length, "qp": seen["qpn"]}
        self._journal(now_ns, "sampled", {**head, **fields, **marks})
