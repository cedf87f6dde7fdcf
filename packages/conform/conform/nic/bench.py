"""The tester of one test: the device's peer and the fabric, by the rules and without an endpoint of the lab."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from conform.nic import frames
from conform.nic.control import values
from conform.nic.device_file import DeviceFile
from conform.nic.frames import ASK, PSN, Builder, Packet, taken_apart
from conform.nic.session import Replay, Session
from conform.result import Broken, NotReachable, must, none

POLL_NS = 10_000_000
FRAMES_MAX = 2000
"""Frames that one wait looks at."""
Where = Callable[[Packet], bool]
EV_PROBE, PORT_STATUS = 1, 0


def equal(name: str, value: object) -> Where:
    """Whether a packet has this value."""
    return lambda packet: bool(getattr(packet, name) == value)


def first(psn: int) -> Where:
    """Whether a packet is the first copy of this PSN."""
    return lambda packet: packet.psn == psn and not packet.again


def copied(psn: int) -> Where:
    """Whether a packet is a later copy of this PSN."""
    return lambda packet: packet.psn == psn and bool(packet.again)


def answered(number: int) -> Where:
    """Whether an endpoint response answers this request."""
    return lambda packet: packet.psn & 0xFFFF == number


@dataclass(slots=True)
class Message:
    """A write of the tester to the device."""

    first: int
    at: int
    data: bytes
    msn: int = 0
    rqmsn: int = 0
    imm: int | None = None
    pmtu: int = 256

    @property
    def count(self) -> int:
        return max(1, -(-len(self.data) // self.pmtu))

    def kind(self, n: int) -> str:
        imm = "_IMM" if self.imm is not None else ""
        if self.count == 1:
            return "WRITE_ONLY" + imm
        return "WRITE_FIRST" if not n else "WRITE_LAST" + imm if n == self.count - 1 else "WRITE_MIDDLE"

    def payload(self, n: int) -> bytes:
        return self.data[n * self.pmtu : (n + 1) * self.pmtu]


class TooSlow(NotReachable):
    """The machine, not the device, was late: the test is made again."""


class Bench:
    """One test's tester."""

    def __init__(self, about: DeviceFile, session: Session | Replay, rng: Random) -> None:
        self.about, self.session, self.rng = about, session, rng
        self.unread: list[Packet] = []
        """Frames of the device that no expectation has taken."""
        self.seen: list[Packet] = []
        self.answering = True
        """Whether endpoint requests of the device are answered."""
        self.arrived: tuple[int, tuple[int, ...]] | None = None
        """The packets of the device that have come: the cumulative PSN and others; probes are answered with it."""
        self.dead_evs: set[int] = set()
        """EVs whose frames are lost: no probe of these is answered."""
        self.qpn = rng.randrange(0x100, 0xFFFF)
        """The tester's queue pair."""
        self.to = Builder(about, 0)
        self.peer_psn = self.psn = 0
        """The first PSN of the tester, and of the device."""
        self.memory_bytes = 0
        self.evs = list(about.evs)
        self._request = rng.randrange(0x10000)
        self._done: list[str] = []
        self._msn = self._rqmsn = 0
        self._next = 0
        self.fence_ev = min(about.evs, key=lambda ev: about.evs[ev])

    # --- control ------------------------------------------------------------------------------------------------

    def ask(self, line: str) -> dict[str, str]:
        """The values of the device's answer. Raises `NotReachable` if the device refuses."""
        answer = self.session.ask(line)
        word = line.partition(" ")[0]
        if answer.partition(" ")[0] == "ok":
            return values(answer)
        if answer == "unsupported":
            raise NotReachable(f"the device does not support {word!r} on its control channel")
        raise NotReachable(f"the device refuses {word!r}: {answer[:200]}")

    def number(self, answer: dict[str, str], key: str) -> int:
        try:
            return int(answer[key], 0)
        except (KeyError, ValueError):
            raise NotReachable(f"the device's answer must have a number {key} (got {answer})") from None

    def begin(
        self, *, psn: int | None = None, peer_psn: int | None = None, receives: int = 0, evs: Iterable[int] = (),
        wimm: int | None = None, mpr: int | None = None, peer_wimm: int | None = None,
    ) -> Bench:  # fmt: skip
        """Reset the device and connect one queue pair."""
        about = self.about
        self.psn = self.rng.randrange(PSN) if psn is None else psn
        self.peer_psn = self.rng.randrange(PSN) if peer_psn is None else peer_psn
        self._next = self.peer_psn
        self.evs = list(evs or about.evs)
        self.ask("reset")
        answer = self.ask(f"open psn={self.psn} mpr={about.mpr} wimm={wimm or about.wimm} pmtu={about.pmtu}")
        qpn, va, rkey, self.memory_bytes = (self.number(answer, key) for key in ("qpn", "va", "rkey", "bytes"))
        self.to = Builder(about, qpn, va, rkey)
        self.ask(
            f"connect qpn={self.qpn} psn={self.peer_psn} mpr={mpr or about.mpr} wimm={peer_wimm or about.wimm}"
            f" pmtu={about.pmtu} evs={','.join(map(str, self.evs))}"
        )
        if receives:
            self.ask(f"receive count={receives}")
        return self

    def memory(self, at: int, size: int) -> bytes:
        """The contents of the device's memory."""
        found = b""
        while size > len(found):
            part = min(4096, size - len(found))
            try:
                found += bytes.fromhex(self.ask(f"read offset={at + len(found)} bytes={part}").get("hex", ""))
            except ValueError:
                raise NotReachable("the device's answer to 'read' must be hex=…") from None
        return found

    def holds(self, message: Message, parts: Iterable[int] | None = None) -> None:
        """Compare the device's memory with these packets of a message; all others must have left it at 0."""
        kept = set(range(message.count) if parts is None else parts)
        empty = bytes(message.pmtu)
        wanted = b"".join(
            message.payload(n) if n in kept else empty[: len(message.payload(n))] for n in range(message.count)
        )
        found = self.memory(message.at, len(message.data))
        if found != wanted:
            at = next(n for n, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1])
            raise Broken(f"byte {message.at + at} of the memory is {found[at]:#x}, not {wanted[at]:#x}")

    def completions(self) -> list[str]:
        """New completions, such as `7:success` and `imm:160:256`."""
        done = self.ask("completions").get("done", "")
        return [one for one in done.split(",") if one]

    def completion(self, wait_ms: int | None = None) -> str:
        """The next completion; "" if there is none in time."""
        for _ in range(max(1, (wait_ms or self.about.answer_ms) * 1_000_000 // POLL_NS)):
            self._done += [] if self._done else self.completions()
            if self._done:
                return self._done.pop(0)
            self.take(self.session.clock_ns() + POLL_NS)
        return ""

    def completes(self, wanted: str = "1:success") -> None:
        """Expect this as the next completion."""
        found = self.completion()
        must(found == wanted, f"the completion is {found or 'missing'}, not {wanted}")

    def incomplete(self, why: str) -> None:
        """Expect no completion until the device has settled."""
        self.settle()
        none(self.completions(), f"came: {why}")

    # --- frames out ---------------------------------------------------------------------------------------------

    def send(self, data: bytes, ev: int, note: str) -> None:
        self.session.send(self.about.evs.get(ev, 1), data, note)

    def control(self, transport: bytes, note: str, ev: int | None = None) -> None:
        """A control packet to the device."""
        ev = self.evs[0] if ev is None else ev
        self.send(self.to.seal(transport, ev, "control"), ev, note)

    def message(self, packets: int = 1, *, size: int | None = None, imm: int | None = None) -> Message:
        """A new write to the device, behind the last one in PSNs, memory and message numbers."""
        size = packets * self.about.pmtu if size is None else size
        data = self.rng.randbytes(size) if size else b""
        data = bytes(byte or 1 for byte in data)  # so that what was never written differs
        at = getattr(self, "_at", 0)
        found = Message(self._next, at, data, self._msn, self._rqmsn, imm, self.about.pmtu)
        self._at = at + -(-size // 8) * 8
        self._next = self._next + found.count & PSN
        self._msn += 1
        self._rqmsn += imm is not None
        return found

    def frame(
        self, message: Message, n: int, *, ev: int | None = None, flags: int | None = None, dscp: str = "trimmable",
        marked: bool = False, udp_port: int = 0, bare: bool = False, **changes: Any,
    ) -> bytes:  # fmt: skip
        """Packet `n` of a message as a frame; the last one asks for an acknowledgement."""
        ev = self.evs[0] if ev is None else ev
        flags = (ASK if n == message.count - 1 else 0) if flags is None else flags
        kind = changes.pop("kind", message.kind(n))
        payload = changes.pop("payload", message.payload(n))
        imm = message.imm if kind.endswith("IMM") else None
        fields: dict[str, Any] = {"msn": message.msn, "rqmsn": message.rqmsn, "flags": flags, "imm": imm, **changes}
        psn = fields.pop("psn", message.first + n)
        total = fields.pop("total", len(message.data))
        at = fields.pop("at", message.at + n * message.pmtu)
        body = self.to.write(kind, psn, at, payload, total, **fields)
        return self.to.seal(body, ev, dscp, marked=marked, udp_port=udp_port, bare=bare)

    def put(self, message: Message, *packets: int, ev: int | None = None, note: str = "", **changes: Any) -> None:
        """Send these packets of a message; without any, the first."""
        ev = self.evs[0] if ev is None else ev
        for n in packets or (0,):
            self.send(self.frame(message, n, ev=ev, **changes), ev, note or f"packet {n} of {message.count}")

    def put_all(self, packets: int = 1, *, size: int | None = None, imm: int | None = None) -> Message:
        """A new write to the device, of which all packets are sent in order."""
        message = self.message(packets, size=size, imm=imm)
        self.put(message, *range(message.count))
        return message

    def put_trimmed(
        self, message: Message, n: int = 0, *, ev: int | None = None, lasthop: bool = False, lengths: bool = False,
        **changes: Any,
    ) -> None:  # fmt: skip
        """Send packet `n` as a switch leaves it that trims."""
        ev = self.evs[0] if ev is None else ev
        cut = frames.trimmed(self.frame(message, n, ev=ev, **changes), self.about, lasthop, lengths)
        self.send(cut, ev, f"packet {n} of {message.count}, trimmed")

    def put_probe(self, psn: int, number: int, ev: int | None = None, *, marked: bool = False) -> None:
        """Send a reliability probe."""
        ev = self.evs[0] if ev is None else ev
        self.send(self.to.seal(self.to.probe(psn, number), ev, "trimmable", marked=marked), ev, "reliability probe")

    def probe(self, psn: int, number: int, ev: int | None = None, *, marked: bool = False) -> Packet:
        """The answer to a reliability probe."""
        self.put_probe(psn, number, ev, marked=marked)
        return self.expect("SACK", "the probe is answered", lambda p: p.probe and p.probe_id == number)

    def refuse(self, packet: Packet, reason: int = frames.TRIMMED) -> Packet:
        """Refuse a packet with a NACK; returns its copy."""
        self.control(self.to.nack(packet.psn, reason, packet.ev), "NACK", packet.ev)
        return self.expect_data("the packet was refused", copied(packet.psn))

    # --- frames in ----------------------------------------------------------------------------------------------

    def take(self, until_ns: int) -> Packet | None:
        """The device's next frame, also put among the unread; None if none comes."""
        event = self.session.receive(until_ns)
        if event is None:
            return None
        packet = taken_apart(event.t_ns, int(event.place.removeprefix("port")), event.data)
        self.seen.append(packet)
        self.unread.append(packet)
        if packet.kind == "ENDPOINT_REQUEST" and self.answering:
            mask = (1 << self.about.ports) - 1
            body = frames.response(packet.op, packet.psn & 0xFFFF, mask, packet.stamp)
            self.control(body, "answer to the device's request", packet.ev if packet.ev in self.about.evs else None)
        if packet.kind == "PROBE" and self.arrived and packet.ev not in self.dead_evs and packet.qpn == self.qpn:
            cack, others = self.arrived
            self.control(self.to.sack(cack, others, ev=packet.ev, probe_id=packet.probe_id), "answer to a probe")
        return packet

    def in_time(self, since_ns: int) -> None:
        """Raises `TooSlow` if so long has passed that the device's retransmission timer may have run out."""
        timers = self.about.timers
        if self.seen and self.seen[-1].t_ns - since_ns > (timers.unit_ns << timers.timeout) // 2:
            raise TooSlow("too slow: the device's timer may have run out meanwhile")

    def drain(self, until_ns: int) -> None:
        """Take what comes until then."""
        for _ in range(FRAMES_MAX):
            if self.take(until_ns) is None:
                return

    def expect(self, kind: str, why: str, where: Where = lambda _: True, wait_ms: int | None = None) -> Packet:
        """The first unread frame of this kind. Raises `Broken` if none comes in time."""
        return self._expect((kind,), kind, why, where, wait_ms)

    def expect_data(self, why: str, where: Where = lambda _: True, wait_ms: int | None = None) -> Packet:
        """The first unread packet of a write."""
        return self._expect(frames.WRITES, "data packet", why, where, wait_ms)

    def _expect(self, kinds: tuple[str, ...], name: str, why: str, where: Where, wait_ms: int | None) -> Packet:
        wait_ms = wait_ms or self.about.answer_ms
        until = self.session.clock_ns() + wait_ms * 1_000_000
        looked = 0
        for _ in range(FRAMES_MAX):
            for packet in self.unread[looked:]:
                if packet.kind in kinds and self.ours(packet) and where(packet):
                    self.unread.remove(packet)
                    return packet
            looked = len(self.unread)
            if self.take(until) is None:
                break
        came = ", ".join(str(one) for one in self.unread[-6:]) or "nothing"
        raise Broken(f"no {name} within {wait_ms} ms: {why} (came: {came})")

    def ours(self, packet: Packet) -> bool:
        """Whether a frame is of this test's queue pair, or of none."""
        return not packet.fault and packet.qpn in (self.qpn, frames.ENDPOINT_QPN)

    def of(self, *kinds: str) -> list[Packet]:
        """Unread frames of these kinds."""
        return [one for one in self.unread if one.kind in kinds and self.ours(one)]

    def never(self, why: str, *kinds: str, where: Where = lambda _: True) -> None:
        """Raises `Broken` if a frame of these kinds has come, or comes until the device has settled."""
        self.settle()
        none([packet for packet in self.of(*kinds) if where(packet)], f"came: {why}")

    def settle(self) -> None:
        """Wait until the device has dealt with all that was sent: two EV probes are answered after it.

        The answer to the second begins after everything that the first answer's batch had in its queues.
        """
        wait_ms = self.about.settle_ms if self.about.ev_probe else self.about.answer_ms
        if self.about.ev_probe:
            self.probe_ev()
            self.probe_ev()
        self.drain(self.session.clock_ns() + wait_ms * 1_000_000)

    def probe_ev(self, ev: int | None = None) -> Packet:
        """The answer to an EV probe."""
        self._request = self._request + 1 & 0xFFFF
        number = self._request
        ev = self.fence_ev if ev is None else ev
        self.control(frames.request(EV_PROBE, number, (1 << self.about.ports) - 1, number ^ 0x55AA), "EV probe", ev)
        return self.expect("ENDPOINT_RESPONSE", "every EV probe is answered", answered(number))

    # --- the device sends ---------------------------------------------------------------------------------------

    def post(self, packets: int = 3, *, size: int | None = None, number: int = 1, imm: int | None = None) -> bytes:
        """Let the device write to the tester; returns the data."""
        size = packets * self.about.pmtu if size is None else size
        data = self.rng.randbytes(size)
        for at in range(0, size, 4096):
            self.ask(f"fill offset={at} hex={data[at : at + 4096].hex()}")
        last = "" if imm is None else f" imm={imm}"
        self.ask(f"write id={number} offset=0 bytes={size} va={0x10000} rkey={0x1234}{last}")
        return data

    def data(self, packets: int, why: str = "the device sends its write") -> list[Packet]:
        """Packets of the device's write, by PSN, each once."""
        return [self.expect_data(why, first(self.psn + n & PSN)) for n in range(packets)]

    def copies(self, where: Where = lambda _: True) -> list[Packet]:
        """Unread packets of the device's write that were sent again."""
        return [one for one in self.of(*frames.WRITES) if one.again and where(one)]

    def acknowledge(self, cack: int, msn: int, *, ev: int | None = None, mark: int = 0) -> None:
        """Tell the device that everything through `cack` has arrived, and `msn` messages are complete."""
        self.control(self.to.sack(cack, ev=self.evs[0] if ev is None else ev, mark=mark), "SACK")
        self.control(self.to.acknowledge(cack, msn), "ACK")
