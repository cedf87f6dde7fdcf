"""The lab's NIC as a process with a planted fault: the request `mutant name=NAME` chooses one, and resets the device.

Most faults are at the edge, where frames come and go, so that they hold for a compiled endpoint as well.
"""

import struct
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from conform import device
from conform.nic import frames
from conform.nic.device_file import DeviceFile, load
from conform.nic.frames import WRITES, Packet, taken_apart
from endpoint.nic.frame import seal

Frames = list[bytes]


def resealed(packet: Packet, change: Callable[[bytearray, int], None]) -> Frames:
    """The frame with other bytes from the BTH on, and a right ICRC."""
    at = packet.bth
    body = bytearray(packet.data[at:-4])
    change(body, at)
    return [seal(packet.data[:at], bytes(body))]


class Mutant:
    """A fault: what becomes of frames in and out, of the settings, of requests."""

    settings: dict[str, object] = {}  # noqa: RUF012

    def __init__(self, of: "MutantDevice") -> None:
        self.of = of

    def inward(self, packet: Packet) -> Frames:
        return [packet.data]

    def outward(self, packet: Packet) -> Frames:
        return [packet.data]

    def request(self, line: str) -> str:
        return line

    def answer(self, word: str, answer: str) -> str:
        return answer


class CopiesWrite(Mutant):
    def inward(self, packet: Packet) -> Frames:
        if (
            packet.kind in WRITES
            and not packet.fault
            and packet.rkey == self.of.region.rkey
            and frames.icrc_right(packet)
        ):
            at = packet.va - self.of.region.va
            self.of.memory[at : at + len(packet.payload)] = packet.payload
        return [packet.data]


class BitmapOneOff(Mutant):
    def outward(self, packet: Packet) -> Frames:
        def change(body: bytearray, _: int) -> None:
            body[32:40] = struct.pack("!Q", struct.unpack_from("!Q", body, 32)[0] << 1 & (1 << 64) - 1)

        return resealed(packet, change) if packet.kind == "SACK" else [packet.data]


class EvHalvesSwapped(Mutant):
    def outward(self, packet: Packet) -> Frames:
        def change(body: bytearray, _: int) -> None:
            body[16:20] = body[18:20] + body[16:18]

        return resealed(packet, change) if packet.kind == "SACK" else [packet.data]


class MarkLost(Mutant):
    def outward(self, packet: Packet) -> Frames:
        def change(body: bytearray, _: int) -> None:
            body[13] &= ~0x60

        return resealed(packet, change) if packet.kind == "SACK" else [packet.data]


class NoRetransmissionFlag(Mutant):
    def outward(self, packet: Packet) -> Frames:
        def change(body: bytearray, _: int) -> None:
            body[8] &= ~frames.AGAIN

        return resealed(packet, change) if packet.kind in WRITES else [packet.data]


class WrongIcrc(Mutant):
    def outward(self, packet: Packet) -> Frames:
        return [packet.data[:-1] + bytes([packet.data[-1] ^ 1])]


class NowAndThenWrongIcrc(WrongIcrc):
    """Of three queue pairs in a row, the first and the last."""

    def __init__(self, of: "MutantDevice") -> None:
        super().__init__(of)
        self.resets = -1

    def request(self, line: str) -> str:
        self.resets += line == "reset"
        return line

    def outward(self, packet: Packet) -> Frames:
        return [packet.data] if self.resets % 3 == 1 else super().outward(packet)


class LengthOfPacket(Mutant):
    def outward(self, packet: Packet) -> Frames:
        def change(body: bytearray, _: int) -> None:
            body[28:32] = struct.pack("!I", len(packet.payload))

        return resealed(packet, change) if packet.kind in WRITES else [packet.data]


class OneReason(Mutant):
    def outward(self, packet: Packet) -> Frames:
        def change(body: bytearray, _: int) -> None:
            body[14] = frames.TRIMMED

        return resealed(packet, change) if packet.kind == "NACK" else [packet.data]


class NoBareTrim(Mutant):
    def inward(self, packet: Packet) -> Frames:
        return [] if len(packet.data) == self.of.about.trim_bytes and packet.data[20] == 17 else [packet.data]


class CopiesUnanswered(Mutant):
    def __init__(self, of: "MutantDevice") -> None:
        super().__init__(of)
        self.psns: set[tuple[int, int]] = set()

    def inward(self, packet: Packet) -> Frames:
        if packet.kind not in WRITES:
            return [packet.data]
        key = packet.qpn, packet.psn
        known = key in self.psns
        self.psns.add(key)
        return [] if known else [packet.data]

    def request(self, line: str) -> str:
        if line == "reset":
            self.psns.clear()
        return line


class SignedProbeId(Mutant):
    def outward(self, packet: Packet) -> Frames:
        def change(body: bytearray, _: int) -> None:
            body[14] &= 0x7F

        return resealed(packet, change) if packet.kind == "SACK" and packet.probe else [packet.data]


class ImmediatesAsTheyCome(Mutant):
    def __init__(self, of: "MutantDevice") -> None:
        super().__init__(of)
        self.come: list[str] = []

    def inward(self, packet: Packet) -> Frames:
        if packet.kind.endswith("IMM"):
            self.come.append(f"imm:{packet.imm}:{packet.length}")
        return [packet.data]

    def answer(self, word: str, answer: str) -> str:
        if word != "completions":
            return answer
        come, self.come = self.come, []
        return f"ok done={','.join(come)}"


class AnyKey(Mutant):
    def inward(self, packet: Packet) -> Frames:
        def change(body: bytearray, _: int) -> None:
            body[24:28] = struct.pack("!I", self.of.region.rkey)

        whole = packet.kind in WRITES and not packet.flags & frames.STAMPED and frames.icrc_right(packet)
        return resealed(packet, change) if whole else [packet.data]


class MessageTooEarly(Mutant):
    def outward(self, packet: Packet) -> Frames:
        def change(body: bytearray, _: int) -> None:
            body[12:16] = struct.pack("!I", packet.syndrome << 24 | packet.msn + 1)

        return resealed(packet, change) if packet.kind == "ACKNOWLEDGE" else [packet.data]


class GoBackN(Mutant):
    def __init__(self, of: "MutantDevice") -> None:
        super().__init__(of)
        self.sent: dict[int, Packet] = {}

    def outward(self, packet: Packet) -> Frames:
        if packet.kind not in WRITES:
            return [packet.data]
        if not packet.again:
            self.sent[packet.psn] = packet
            return [packet.data]

        def change(body: bytearray, _: int) -> None:
            body[8] |= frames.AGAIN

        behind = [one for psn, one in self.sent.items() if 0 < psn - packet.psn < 100]
        return [packet.data, *(copy for one in behind for copy in resealed(one, change))]

    def request(self, line: str) -> str:
        if line == "reset":
            self.sent.clear()
        return line


class EarlyTimer(Mutant):
    settings = {"timeout": 15}  # noqa: RUF012


class PortStatusIgnored(Mutant):
    def inward(self, packet: Packet) -> Frames:
        def change(body: bytearray, _: int) -> None:
            body[16:20] = struct.pack("!I", 3)

        return resealed(packet, change) if packet.kind == "ENDPOINT_REQUEST" and not packet.op else [packet.data]


class OneEv(Mutant):
    def request(self, line: str) -> str:
        head, mark, evs = line.partition(" evs=")
        return f"{head}{mark}{evs.partition(',')[0]}"


class LossesUnheeded(Mutant):
    settings = {"selection": "oblivious"}  # noqa: RUF012


class WindowIgnored(Mutant):
    def request(self, line: str) -> str:
        return line.replace(" mpr=1 ", " mpr=8 ") if line.startswith("connect") else line


class ImmediatesUnbounded(Mutant):
    def request(self, line: str) -> str:
        return line.replace(" wimm=2 ", " wimm=32 ") if line.startswith("connect") else line


MUTANTS: dict[str, tuple[type[Mutant], str]] = {
    "copies-write": (CopiesWrite, "RSP-016"),
    "bitmap-one-off": (BitmapOneOff, "RSP-006"),
    "ev-halves-swapped": (EvHalvesSwapped, "RSP-013"),
    "mark-lost": (MarkLost, "FAB-015"),
    "no-rtx": (NoRetransmissionFlag, "REQ-009"),
    "wrong-icrc": (WrongIcrc, "WIR-003"),
    "length-of-packet": (LengthOfPacket, "REQ-002"),
    "one-reason": (OneReason, "FAB-002"),
    "no-bare-trim": (NoBareTrim, "FAB-004"),
    "copies-unanswered": (CopiesUnanswered, "RSP-015"),
    "signed-probe-id": (SignedProbeId, "RSP-043"),
    "immediates-as-they-come": (ImmediatesAsTheyCome, "RSP-034"),
    "any-key": (AnyKey, "RSP-024"),
    "message-too-early": (MessageTooEarly, "RSP-002"),
    "go-back-n": (GoBackN, "REQ-012"),
    "early-timer": (EarlyTimer, "REQ-029"),
    "port-status-ignored": (PortStatusIgnored, "FAB-028"),
    "one-ev": (OneEv, "FAB-031"),
    "losses-unheeded": (LossesUnheeded, "FAB-035"),
    "window-ignored": (WindowIgnored, "REQ-033"),
    "immediates-unbounded": (ImmediatesUnbounded, "REQ-039"),
}
"""Each fault, and the rule that must name it."""
UNSTEADY: dict[str, tuple[type[Mutant], str]] = {"now-and-then-wrong-icrc": (NowAndThenWrongIcrc, "WIR-003")}
"""Faults that are there in some tries only."""


class MutantDevice(device.Device):
    def __init__(self, about: DeviceFile) -> None:
        self.mutant = Mutant(self)
        super().__init__(about)

    def answer(self, line: str) -> str:
        word, _, rest = line.strip().partition(" ")
        if word == "mutant":
            kind = (MUTANTS | UNSTEADY).get(rest.removeprefix("name="), (Mutant, ""))[0]
            self.mutant = kind(self)
            super().__init__(self.about, **kind.settings)
            return "ok"
        return self.mutant.answer(word, super().answer(self.mutant.request(line.strip())))


class MutantWire(device.SocketWire):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.of: MutantDevice

    def receive(self, one: object) -> tuple[int, bytes] | None:  # type: ignore[override]
        port, data = super().receive(one)  # type: ignore[arg-type]
        kept = self.of.mutant.inward(taken_apart(0, port, data))
        return (port, kept[0]) if kept else None

    def send(self, port: int, data: bytes) -> None:
        for changed in self.of.mutant.outward(taken_apart(0, port, data)):
            super().send(port, changed)


def main(words: Iterable[str]) -> None:
    file, path = map(Path, words)
    wire = MutantWire(path)
    wire.of = MutantDevice(load(file))
    device.serve(wire.of, wire)


if __name__ == "__main__":
    main(sys.argv[1:])
