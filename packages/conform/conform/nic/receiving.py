"""Tests of a responder: a NIC that is written to, and its acknowledgements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conform.nic import frames
from conform.nic.bench import Bench, Message, equal
from conform.nic.frames import AGAIN, ASK, NAK_ACCESS, PSN
from conform.result import Choice, must, none
from endpoint.nic.frame import seal

ANSWERS = ("SACK", "NACK", "ACKNOWLEDGE")
Test = Callable[[Bench], None]


def whole(bench: Bench, message: Message) -> None:
    """Expect that the device has all of a message that was sent."""
    last = message.first + message.count - 1 & PSN
    bench.expect("SACK", f"everything through {last} has arrived", equal("cack", last))
    bench.holds(message)


def in_order(bench: Bench) -> None:
    """A message of three packets."""
    whole(bench, bench.begin().put_all(3))


def acknowledged(bench: Bench) -> None:
    """The transport acknowledgement counts completed messages."""
    bench.begin()
    for number in (1, 2, 3):
        bench.put_all(2)
        found = bench.expect("ACKNOWLEDGE", f"{number} messages are complete", equal("msn", number)).syndrome
        must(found == frames.ACK, f"the acknowledgement's syndrome is {found:#x}, not 0x1f")


def reversed_order(bench: Bench) -> None:
    """A message of eight packets, the last first."""
    message = bench.begin().message(8)
    bench.put(message, *reversed(range(8)), flags=ASK)
    whole(bench, message)


def shuffled(bench: Bench) -> None:
    """Three messages of twenty packets in random order."""
    bench.begin()
    messages = [bench.message(20) for _ in range(3)]
    order = [(message, n) for message in messages for n in range(20)]
    bench.rng.shuffle(order)
    for message, n in order:
        bench.put(message, n, ev=bench.rng.choice(bench.evs), flags=ASK)
    whole(bench, messages[-1])
    for message in messages:
        bench.holds(message)


def placed_early(bench: Bench) -> None:
    """A packet behind a hole is in memory before the hole is filled."""
    message = bench.begin().message(4)
    bench.put(message, 2, flags=ASK)
    bench.expect("SACK", "packet 2 has arrived", lambda p: message.first + 2 & PSN in p.received)
    bench.holds(message, [2])


def gaps(first: int, count: int, *lost: int) -> Test:
    """A test with part of a message; the SACK of its last packet must say what is missing."""

    def test(bench: Bench) -> None:
        there = [n for n in range(count) if n not in lost]
        bench.put(bench.begin(peer_psn=first).message(count), *there)
        found = bench.expect("SACK", "the last packet asks", lambda p: first + count - 1 & PSN in p.received)
        cack = first + lost[0] - 1 & PSN
        above = {first + n & PSN for n in there if n > lost[0]}
        must(found.cack == cack, f"the cumulative PSN is {found.cack}, not {cack}")
        told = {psn for psn in found.received if (psn - cack & PSN) < 1 << 23}
        must(told == above, f"the bitmap says that {sorted(told)} have arrived, not {sorted(above)}")

    return test


example = gaps(0, 12, 5, 8)  # the specification's
wrapped_gap = gaps(0xFFFFFE, 4, 1)


def wrapped(bench: Bench) -> None:
    """Messages across the wrap of PSNs are complete."""
    bench.begin(peer_psn=0xFFFFFB)
    for _ in range(3):
        message = bench.message(4)
        bench.put(message, 1, 0, 3, 2, flags=ASK)
        whole(bench, message)


def far_gap(bench: Bench) -> None:
    """Packets farther apart than one bitmap are all reported."""
    message = bench.begin().message(100)
    far = [n for n in range(1, 100) if n % 7]
    bench.put(message, *far[:-1], flags=0)
    bench.put(message, far[-1], flags=ASK)
    bench.settle()
    told = {psn for packet in bench.of("SACK") for psn in packet.received}
    none([f"packet {n}" for n in far if message.first + n & PSN not in told], "has arrived, and no SACK has said so")


def answered(flags: int) -> Test:
    """A test that a packet in the middle of a message is answered because of a flag."""

    def test(bench: Bench) -> None:
        message = bench.begin().message(3)
        bench.put(message, 0, flags=flags)
        bench.expect("SACK", f"the packet has the flag {flags:#x}", equal("cack", message.first))

    return test


asked, retransmitted = answered(ASK), answered(AGAIN)


def threshold(bench: Bench) -> str:
    """How many packets that do not ask bring a SACK."""
    bench.put(bench.begin().message(64), *range(64), flags=0)
    bench.settle()
    raise Choice(f"{len(bench.of('SACK'))} SACKs for 64 packets of {bench.about.pmtu} bytes that do not ask")


def echo(bench: Bench) -> None:
    """A SACK has the EV of the packet that caused it."""
    bench.begin()
    for ev in bench.evs:
        message = bench.message()
        bench.put(message, ev=ev)
        found = bench.expect("SACK", "the packet asks", equal("cack", message.first)).entropy
        must(found == ev, f"the SACK of a packet on EV {ev:#x} has EV {found:#x}")


def no_mark(bench: Bench) -> None:
    """A packet without a mark brings none."""
    message = bench.begin().put_all()
    found = bench.expect("SACK", "the packet asks", equal("cack", message.first)).mark
    must(not found, f"the SACK of a packet without a mark has the mark {found}")


def twice(bench: Bench, hole: bool) -> Message:
    """A packet, and a copy with other bytes; with a hole, the message before them is missing."""
    message = bench.begin().message(2)
    if hole:
        message = bench.message()
    bench.put(message, *range(message.count))
    bench.settle()
    bench.unread.clear()
    n = message.count - 1
    bench.put(message, n, payload=bytes(byte ^ 0x5A for byte in message.payload(n)), note="a copy with other bytes")
    return message


def duplicate(bench: Bench) -> None:
    """A copy of a packet that has arrived: SACK and ACK again."""
    message = twice(bench, hole=False)
    bench.expect("SACK", "a copy is answered", equal("cack", message.first + 1 & PSN))
    bench.expect("ACKNOWLEDGE", "a copy below the window is acknowledged again", equal("msn", 1))


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
        message = bench.put_all()
        bench.put(message, 0, 0, flags=ASK | AGAIN)
        bench.settle()
        counted = max((packet.msn for packet in bench.of("ACKNOWLEDGE")), default=0)
        must(counted == number, f"the device counts {counted} messages, not {number}")


def nothing(bench: Bench, message: Message, why: str) -> None:
    """Expect that a frame has left no trace."""
    bench.never(why, *ANSWERS)
    bench.holds(message, [])


def beyond(bench: Bench) -> str | None:
    """A PSN behind the window."""
    message = bench.begin().message()
    bench.put(message, psn=message.first + bench.about.mpr * 128, note="one PSN behind the window")
    bench.settle()
    bench.holds(message, [])
    none(bench.of("SACK", "ACKNOWLEDGE"), "came for a PSN outside of the window")
    reasons = {packet.reason for packet in bench.of("NACK")}
    must(reasons <= {frames.OUT_OF_WINDOW}, f"a NACK with reason {reasons} came for a PSN outside of the window")
    return "refused with PSN_OOR_WINDOW" if reasons else "dropped in silence"


def edge(bench: Bench) -> None:
    """The last PSN of the window is accepted."""
    message = bench.begin().message()
    psn = message.first + bench.about.mpr * 128 - 1 & PSN
    bench.put(message, psn=psn)
    bench.expect("SACK", "the last PSN of the window has arrived", lambda p: psn in p.received)
    bench.holds(message)


def spoiled(change: Callable[[bytes, Bench], bytes], why: str) -> Test:
    """A test of a frame that was changed on the way: it leaves no trace, and its original is accepted afterwards."""

    def test(bench: Bench) -> None:
        message = bench.begin().message()
        bench.send(change(bench.frame(message, 0), bench), bench.evs[0], why)
        nothing(bench, message, why)
        bench.put(message)
        whole(bench, message)

    return test


def flipped(data: bytes, at: int) -> bytes:
    """With one bit of a byte turned."""
    at %= len(data)
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


bad_icrc = spoiled(lambda data, _: flipped(data, -5), "the ICRC is wrong")
bad_header_icrc = spoiled(
    lambda data, bench: flipped(data, -4 - bench.about.pmtu - 16 + 7), "the ICRC is wrong: the address was changed"
)
truncated = spoiled(
    lambda data, bench: data[: bench.about.trim_bytes], "a cut frame in the data class is no trimmed packet"
)


def unknown_qp(bench: Bench) -> None:
    """A write to a queue pair that does not exist."""
    message = bench.begin().message()
    bench.put(message, qpn=bench.to.qpn ^ 0x5555)
    nothing(bench, message, "the queue pair does not exist")


def stranger(bench: Bench) -> None:
    """A write from an address that is not the peer's."""
    message = bench.begin().message()
    data, why = bench.frame(message, 0), "a write from an address that is not the peer's"
    inner = frames.ipv6_headers(data)[-1]
    head = data[: inner + 8] + bench.about.tester.packed[:-1] + b"\x77" + data[inner + 24 : inner + 48]
    bench.send(seal(head, data[inner + 48 : -frames.ICRC]), bench.evs[0], why)
    nothing(bench, message, why)


def unknown_opcode(bench: Bench) -> None:
    """An opcode that MRC does not have."""
    for opcode in (0xC0, 0xCC, 0xDF, 0x0A):
        message, why = bench.begin().message(), f"MRC has no opcode {opcode:#x}"
        body = bench.to.write("WRITE_ONLY", message.first, message.at, message.data, len(message.data))
        bench.send(bench.to.seal(bytes([opcode]) + body[1:], bench.evs[0], "trimmable"), bench.evs[0], why)
        nothing(bench, message, why)


def refused(bench: Bench, why: str, *, rkey: int = 0, offset: int = 0) -> Message:
    """A write that must be refused with a NAK; its key and its place are those of the memory, and so much more."""
    message = bench.begin().message()
    bench.put(message, note=why, rkey=bench.to.rkey ^ rkey, va=bench.to.va + offset)
    found = bench.expect("ACKNOWLEDGE", why, lambda p: p.syndrome >= 0x60).syndrome
    must(found == NAK_ACCESS, f"{why}: the syndrome is {found:#x}, not {NAK_ACCESS:#x}")
    return message


def wrong_rkey(bench: Bench) -> None:
    bench.holds(refused(bench, "a write with an unknown rkey", rkey=1), [])


def wrong_va(bench: Bench) -> None:
    refused(bench, "a write in front of the memory", offset=-bench.about.pmtu)


def over_the_end(bench: Bench) -> None:
    bench.begin()  # for the memory's size
    refused(bench, "a write across the end of the memory", offset=bench.memory_bytes - 8)


def dead_after_nak(bench: Bench) -> None:
    """After a NAK the queue pair accepts nothing."""
    message = refused(bench, "a write with an unknown rkey", rkey=1)
    bench.settle()
    bench.put(message, note="the same write with the right rkey")
    bench.settle()
    bench.holds(message, [])


def ends(bench: Bench, why: str) -> None:
    """Expect a refusal of some kind: a NAK, or a NACK that is fatal."""
    bench.settle()
    naks = [packet for packet in bench.of("ACKNOWLEDGE") if packet.syndrome >= 0x60]
    fatal = [packet for packet in bench.of("NACK") if packet.reason == frames.UNEXPECTED]
    must(naks or fatal, f"{why} was not refused")


def short_middle(bench: Bench) -> None:
    """A packet within a message that is shorter than the PMTU."""
    message = bench.begin().message(3)
    bench.put(message, 0, payload=message.payload(0)[:100], flags=ASK)
    ends(bench, "a first packet of 100 bytes")


def wrong_length(bench: Bench) -> None:
    """A single packet whose message would be longer."""
    bench.put(bench.begin().message(), total=2 * bench.about.pmtu)
    ends(bench, "an only packet of half its message")


def odd_sizes(bench: Bench) -> None:
    """Messages of odd lengths, with a pad."""
    bench.begin()
    for size in (1, 2, 3, 5, bench.about.pmtu - 1, bench.about.pmtu + 1, 2 * bench.about.pmtu + 7):
        whole(bench, bench.put_all(size=size))


def interleaved(bench: Bench) -> None:
    """Packets of two messages by turns."""
    bench.begin()
    first, second = bench.message(6), bench.message(6)
    for n in range(6):
        bench.put(second, n, ev=bench.evs[-1])
        bench.put(first, n)
    whole(bench, second)
    bench.holds(first)


def accepted(**changes: Any) -> Test:
    """A test that a write with these changes is placed."""

    def test(bench: Bench) -> None:
        message = bench.begin().message()
        bench.put(message, **changes)
        whole(bench, message)

    return test


other_port, reserved_bits = accepted(udp_port=4971), accepted(flags=ASK | 0x0F)
