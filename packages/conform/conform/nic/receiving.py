"""Tests of a responder: a NIC that is written to, and its acknowledgements."""

from __future__ import annotations

from collections.abc import Callable

from conform.nic import frames
from conform.nic.bench import Bench, Message, equal
from conform.nic.frames import AGAIN, NAK_ACCESS, PSN
from conform.result import Broken, Choice
from endpoint.nic.frame import seal

ANSWERS = ("SACK", "NACK", "ACKNOWLEDGE")


def whole(bench: Bench, message: Message) -> None:
    """Expect that the device has all of a message that was sent."""
    last = message.first + message.count - 1 & PSN
    bench.expect("SACK", f"everything through {last} has arrived", lambda p: p.cack == last)
    bench.holds(message)


def in_order(bench: Bench) -> None:
    """A message of three packets."""
    message = bench.begin().message(3)
    for n in range(3):
        bench.put(message, n)
    whole(bench, message)


def acknowledged(bench: Bench) -> None:
    """The transport acknowledgement counts completed messages."""
    bench.begin()
    for number in (1, 2, 3):
        message = bench.message(2)
        bench.put(message, 0)
        bench.put(message, 1)
        found = bench.expect("ACKNOWLEDGE", f"{number} messages are complete", equal("msn", number))
        if found.syndrome != frames.ACK:
            raise Broken(f"the acknowledgement's syndrome is {found.syndrome:#x}, not 0x1f")


def reversed_order(bench: Bench) -> None:
    """A message of eight packets, the last first."""
    message = bench.begin().message(8)
    for n in reversed(range(8)):
        bench.put(message, n, flags=frames.ASK)
    whole(bench, message)


def shuffled(bench: Bench) -> None:
    """Three messages of twenty packets in random order."""
    bench.begin()
    messages = [bench.message(20) for _ in range(3)]
    order = [(message, n) for message in messages for n in range(20)]
    bench.rng.shuffle(order)
    for message, n in order:
        bench.put(message, n, ev=bench.rng.choice(bench.evs), flags=frames.ASK)
    whole(bench, messages[-1])
    for message in messages:
        bench.holds(message)


def placed_early(bench: Bench) -> None:
    """A packet behind a hole is in memory before the hole is filled."""
    message = bench.begin().message(4)
    bench.put(message, 2, flags=frames.ASK)
    bench.expect("SACK", "packet 2 has arrived", lambda p: message.first + 2 & PSN in p.received)
    bench.holds(message, [2])


def gaps(bench: Bench, first: int, count: int, lost: tuple[int, ...]) -> None:
    """Part of a message; the SACK of its last packet must say what is missing."""
    message = bench.begin(peer_psn=first).message(count)
    there = [n for n in range(count) if n not in lost]
    for n in there:
        bench.put(message, n)
    found = bench.expect("SACK", "the last packet asks", lambda p: first + count - 1 & PSN in p.received)
    cack = first + lost[0] - 1 & PSN
    above = {first + n & PSN for n in there if n > lost[0]}
    if found.cack != cack:
        raise Broken(f"the cumulative PSN is {found.cack}, not {cack}")
    told = {psn for psn in found.received if (psn - cack & PSN) < 1 << 23}
    if told != above:
        raise Broken(f"the bitmap says that {sorted(told)} have arrived, not {sorted(above)}")


def example(bench: Bench) -> None:
    """The specification's example: 5 and 8 of 12 are lost."""
    gaps(bench, 0, 12, (5, 8))


def wrapped_gap(bench: Bench) -> None:
    """A hole where PSNs wrap."""
    gaps(bench, 0xFFFFFE, 4, (1,))


def wrapped(bench: Bench) -> None:
    """Messages across the wrap of PSNs are complete."""
    bench.begin(peer_psn=0xFFFFFB)
    for _ in range(3):
        message = bench.message(4)
        for n in (1, 0, 3, 2):
            bench.put(message, n, flags=frames.ASK)
        whole(bench, message)


def far_gap(bench: Bench) -> None:
    """Packets farther apart than one bitmap are all reported."""
    message = bench.begin().message(100)
    far = [n for n in range(1, 100) if n % 7]
    for n in far:
        bench.put(message, n, flags=frames.ASK if n == far[-1] else 0)
    bench.settle()
    told = {psn for packet in bench.of("SACK") for psn in packet.received}
    missing = [n for n in far if message.first + n & PSN not in told]
    if missing:
        raise Broken(f"no SACK has said that packets {missing[:8]} have arrived")


def asked(bench: Bench) -> None:
    """A packet that asks is answered, in the middle of a message too."""
    message = bench.begin().message(3)
    bench.put(message, 0, flags=frames.ASK)
    bench.expect("SACK", "the packet asks", lambda p: p.cack == message.first)


def threshold(bench: Bench) -> str:
    """How many packets that do not ask bring a SACK."""
    message = bench.begin().message(64)
    for n in range(64):
        bench.put(message, n, flags=0)
    bench.settle()
    raise Choice(f"{len(bench.of('SACK'))} SACKs for 64 packets of {bench.about.pmtu} bytes that do not ask")


def retransmitted(bench: Bench) -> None:
    """A packet that is sent again is answered at once."""
    message = bench.begin().message(3)
    bench.put(message, 0, flags=AGAIN)
    bench.expect("SACK", "the packet has RTX", lambda p: p.cack == message.first)


def echo(bench: Bench) -> None:
    """A SACK has the EV of the packet that caused it."""
    bench.begin()
    for ev in bench.evs:
        message = bench.message()
        bench.put(message, 0, ev=ev)
        found = bench.expect("SACK", "the packet asks", equal("cack", message.first))
        if found.entropy != ev:
            raise Broken(f"the SACK of a packet on EV {ev:#x} has EV {found.entropy:#x}")


def no_mark(bench: Bench) -> None:
    """A packet without a mark brings none."""
    message = bench.begin().message()
    bench.put(message, 0)
    found = bench.expect("SACK", "the packet asks", lambda p: p.cack == message.first)
    if found.mark:
        raise Broken(f"the SACK of a packet without a mark has the mark {found.mark}")


def twice(bench: Bench, hole: bool) -> Message:
    """A packet, and a copy with other bytes."""
    bench.begin()
    first = bench.message(2)
    message = bench.message() if hole else first
    if not hole:
        bench.put(first, 0)
    n = 0 if hole else 1
    bench.put(message, n)
    bench.settle()
    bench.unread.clear()
    bench.put(message, n, payload=bytes(byte ^ 0x5A for byte in message.payload(n)), note="a copy with other bytes")
    return message


def duplicate(bench: Bench) -> None:
    """A copy of a packet that has arrived: SACK and ACK again."""
    message = twice(bench, hole=False)
    bench.expect("SACK", "a copy is answered", lambda p: p.cack == message.first + 1 & PSN)
    bench.expect("ACKNOWLEDGE", "a copy below the window is acknowledged again", lambda p: p.msn == 1)


def duplicate_kept(bench: Bench) -> None:
    """A copy writes nothing."""
    for hole in (False, True):
        message = twice(bench, hole)
        bench.settle()
        bench.holds(message)


def duplicate_ahead(bench: Bench) -> None:
    """A copy beyond a hole: a SACK, and no ACK."""
    message = twice(bench, hole=True)
    bench.expect("SACK", "a copy is answered", lambda p: message.first in p.received)
    bench.never("the message before is not complete", "ACKNOWLEDGE", where=lambda p: p.msn > 0)


def copies_of_messages(bench: Bench) -> None:
    """Copies do not count as messages."""
    bench.begin()
    for number in (1, 2):
        message = bench.message()
        for flags in (frames.ASK, frames.ASK | AGAIN, frames.ASK | AGAIN):
            bench.put(message, 0, flags=flags)
        bench.settle()
        counted = {packet.msn for packet in bench.of("ACKNOWLEDGE")}
        if max(counted, default=0) != number:
            raise Broken(f"the device counts {max(counted, default=0)} messages, not {number}")


def nothing(bench: Bench, message: Message, why: str, *answers: str) -> None:
    """Expect that a frame has left no trace."""
    bench.never(why, *(answers or ANSWERS))
    bench.holds(message, [])


def beyond(bench: Bench) -> str | None:
    """A PSN behind the window."""
    message = bench.begin().message()
    bench.put(message, 0, psn=message.first + bench.about.mpr * 128, note="one PSN behind the window")
    bench.settle()
    bench.holds(message, [])
    if bench.of("SACK", "ACKNOWLEDGE"):
        raise Broken(f"{bench.of('SACK', 'ACKNOWLEDGE')[0]} came for a PSN outside of the window")
    reasons = {packet.reason for packet in bench.of("NACK")}
    if reasons - {frames.OUT_OF_WINDOW}:
        raise Broken(f"a NACK with reason {reasons} came for a PSN outside of the window")
    return "refused with PSN_OOR_WINDOW" if reasons else "dropped in silence"


def edge(bench: Bench) -> None:
    """The last PSN of the window is accepted."""
    message = bench.begin().message()
    psn = message.first + bench.about.mpr * 128 - 1 & PSN
    bench.put(message, 0, psn=psn)
    bench.expect("SACK", "the last PSN of the window has arrived", lambda p: psn in p.received)
    bench.holds(message)


def spoiled(bench: Bench, change: Callable[[bytes], bytes], why: str) -> None:
    """A frame that was changed on the way must leave no trace, and its original is accepted afterwards."""
    message = bench.begin().message()
    data = bench.frame(message, 0)
    bench.send(change(data), bench.evs[0], why)
    nothing(bench, message, why)
    bench.put(message, 0)
    whole(bench, message)


def bad_icrc(bench: Bench) -> None:
    """A flipped bit of the payload."""
    spoiled(bench, lambda data: data[:-5] + bytes([data[-5] ^ 1]) + data[-4:], "the ICRC is wrong")


def bad_header_icrc(bench: Bench) -> None:
    """A flipped bit of the RETH's address."""
    at = -4 - bench.about.pmtu - 16 + 7

    def change(data: bytes) -> bytes:
        return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]

    spoiled(bench, change, "the ICRC is wrong: the address was changed")


def truncated(bench: Bench) -> None:
    """A frame that was cut, in a class that is not that of trimmed packets."""
    spoiled(bench, lambda data: data[: bench.about.trim_bytes], "a cut frame in the data class is no trimmed packet")


def unknown_qp(bench: Bench) -> None:
    """A write to a queue pair that does not exist."""
    message = bench.begin().message()
    bench.put(message, 0, qpn=bench.to.qpn ^ 0x5555)
    nothing(bench, message, "the queue pair does not exist")


def stranger(bench: Bench) -> None:
    """A write from an address that is not the peer's."""
    message = bench.begin().message()
    body = bench.to.write("WRITE_ONLY", message.first, message.at, message.data, len(message.data), flags=frames.ASK)
    other = bench.about.tester.packed[:-1] + b"\x77"
    data = bench.to.seal(body, bench.evs[0], "trimmable")
    at = data.rindex(bench.about.tester.packed)
    changed = data[:at] + other + data[at + 16 :]
    inner = frames.ipv6_headers(data)[-1]
    sealed = seal(changed[: inner + 48], body)
    bench.send(sealed, bench.evs[0], "a write from an address that is not the peer's")
    nothing(bench, message, "the source is not the peer")


def unknown_opcode(bench: Bench) -> None:
    """An opcode that MRC does not have."""
    for opcode in (0xC0, 0xCC, 0xDF, 0x0A):
        message = bench.begin().message()
        body = bench.to.write("WRITE_ONLY", message.first, message.at, message.data, len(message.data))
        bench.send(
            bench.to.seal(bytes([opcode]) + body[1:], bench.evs[0], "trimmable"), bench.evs[0], f"opcode {opcode:#x}"
        )
        nothing(bench, message, f"MRC has no opcode {opcode:#x}")


def refused(bench: Bench, message: Message, why: str, *, syndrome: int = NAK_ACCESS, **changes: object) -> None:
    """A write that must be refused with a NAK."""
    bench.put(message, 0, note=why, **changes)  # type: ignore[arg-type]
    found = bench.expect("ACKNOWLEDGE", why, lambda p: p.syndrome >= 0x60)
    if found.syndrome != syndrome:
        raise Broken(f"{why}: the syndrome is {found.syndrome:#x}, not {syndrome:#x}")


def wrong_rkey(bench: Bench) -> None:
    message = bench.begin().message()
    refused(bench, message, "a write with an unknown rkey", rkey=bench.to.rkey ^ 1)
    bench.holds(message, [])


def wrong_va(bench: Bench) -> None:
    message = bench.begin().message()
    refused(bench, message, "a write in front of the memory", va=bench.to.va - bench.about.pmtu)


def over_the_end(bench: Bench) -> None:
    message = bench.begin().message()
    refused(bench, message, "a write across the end of the memory", va=bench.to.va + bench.memory_bytes - 8)


def dead_after_nak(bench: Bench) -> None:
    """After a NAK the queue pair accepts nothing."""
    message = bench.begin().message()
    refused(bench, message, "a write with an unknown rkey", rkey=bench.to.rkey ^ 1)
    bench.settle()
    bench.put(message, 0, note="the same write with the right rkey")
    bench.settle()
    bench.holds(message, [])


def ends(bench: Bench, why: str) -> None:
    """Expect a refusal of some kind: a NAK, or a NACK that is fatal."""
    bench.settle()
    for packet in bench.of("ACKNOWLEDGE", "NACK"):
        if packet.kind == "NACK" and packet.reason == frames.UNEXPECTED:
            return
        if packet.kind == "ACKNOWLEDGE" and packet.syndrome >= 0x60:
            return
    raise Broken(f"{why} was not refused")


def short_middle(bench: Bench) -> None:
    """A packet within a message that is shorter than the PMTU."""
    message = bench.begin().message(3)
    bench.put(message, 0, payload=message.payload(0)[:100], flags=frames.ASK)
    ends(bench, "a first packet of 100 bytes")


def wrong_length(bench: Bench) -> None:
    """A single packet whose message would be longer."""
    message = bench.begin().message()
    bench.put(message, 0, total=2 * bench.about.pmtu)
    ends(bench, "an only packet of half its message")


def other_port(bench: Bench) -> None:
    """A write to UDP port 4971."""
    message = bench.begin().message()
    bench.put(message, 0, udp_port=4971)
    whole(bench, message)


def odd_sizes(bench: Bench) -> None:
    """Messages of odd lengths, with a pad."""
    bench.begin()
    for size in (1, 2, 3, 5, bench.about.pmtu - 1, bench.about.pmtu + 1, 2 * bench.about.pmtu + 7):
        message = bench.message(size=size)
        for n in range(message.count):
            bench.put(message, n)
        whole(bench, message)


def interleaved(bench: Bench) -> None:
    """Packets of two messages by turns."""
    bench.begin()
    first, second = bench.message(6), bench.message(6)
    for n in range(6):
        bench.put(second, n, ev=bench.evs[-1])
        bench.put(first, n)
    whole(bench, second)
    bench.holds(first)


def reserved_bits(bench: Bench) -> None:
    """Reserved bits are not read."""
    message = bench.begin().message()
    bench.put(message, 0, flags=frames.ASK | 0x0F)
    whole(bench, message)
