"""Tests of a responder: completions, and answers to probes and timestamps."""

from __future__ import annotations

from conform.nic import frames
from conform.nic.bench import Bench, equal
from conform.nic.frames import AGAIN, PSN, WRITES
from conform.nic.receiving import ends, whole
from conform.result import Choice, must, none


def immediate(bench: Bench) -> None:
    """An immediate is delivered with the length of its message."""
    bench.begin(receives=1).put_all(3, imm=0xC0FFEE)
    bench.completes(f"imm:{0xC0FFEE}:{3 * bench.about.pmtu}")


def immediate_order(bench: Bench) -> None:
    """Immediates are delivered in the order of sending and not of arrival."""
    bench.begin(receives=4)
    messages = [bench.message(imm=0xA0 + number) for number in range(4)]
    for number in (2, 1, 3, 0):
        bench.put(messages[number])
    for number in range(4):
        bench.completes(f"imm:{0xA0 + number}:{bench.about.pmtu}")


def immediate_waits(bench: Bench) -> None:
    """An immediate waits for a write before it that is not complete."""
    bench.begin(receives=1)
    before, message = bench.message(2), bench.message(imm=7)
    bench.put(before, 0)
    bench.put(message)
    bench.incomplete("the write in front of it has not arrived")
    bench.put(before, 1)
    must(bench.completion(), "the immediate was not delivered once everything before it had arrived")


def immediate_once(bench: Bench) -> None:
    """Copies deliver an immediate once."""
    bench.put(bench.begin(receives=3).message(imm=7), 0, 0, 0)
    bench.settle()
    count = len(bench.completions())
    must(count == 1, f"three copies of a write with immediate brought {count} completions")


def no_completion(bench: Bench) -> None:
    """A plain write takes no receive."""
    whole(bench, bench.begin(receives=1).put_all(2))
    none(bench.completions(), "came of a plain write")


def empty(bench: Bench) -> None:
    """A write with immediate of no bytes; neither its address nor its key is one of the device's."""
    message = bench.begin(receives=1).message(size=0, imm=0xE)
    bench.put(message, va=1 << 40, rkey=bench.to.rkey ^ 1)
    bench.expect("ACKNOWLEDGE", "an empty write is complete", lambda p: p.msn == 1 and p.syndrome == frames.ACK)
    bench.completes("imm:14:0")


def empty_plain(bench: Bench) -> None:
    """A write of no bytes."""
    bench.begin().put_all(size=0)
    bench.expect("ACKNOWLEDGE", "an empty write is complete", lambda p: p.msn == 1 and p.syndrome == frames.ACK)


def no_receive(bench: Bench) -> None:
    """A write with immediate without a receive ends the queue pair: MRC has no RNR."""
    bench.begin(receives=0).put_all(imm=7)
    bench.expect("ACKNOWLEDGE", "no receive is posted", lambda p: p.syndrome >= 0x60)


def too_many(bench: Bench) -> None:
    """More writes with immediate in flight than were granted."""
    bench.begin(receives=4, wimm=2).message()  # a hole, which keeps them in flight
    for _ in range(3):
        bench.put_all(imm=1)
    ends(bench, "a third write with immediate where two were granted")


def probe(bench: Bench, number: int = 0x123) -> None:
    """A reliability probe is answered with its id."""
    message = bench.begin().message(2)
    bench.put(message, 1, flags=0)
    found, wanted = bench.probe(message.first, number).received, [message.first + 1 & PSN]
    must(found == wanted, f"the answer says that {found} have arrived, not {wanted}")


def probe_high(bench: Bench) -> None:
    """A probe's id has 16 bits without a sign."""
    probe(bench, 0x8001)


def probe_takes_no_psn(bench: Bench) -> None:
    """A probe uses up no PSN."""
    message = bench.begin().message()
    for number in (1, 2):
        bench.probe(message.first, number)
    bench.put(message)
    whole(bench, message)


def probe_echo(bench: Bench) -> None:
    """The answer to a probe has the probe's EV."""
    bench.begin()
    for number, ev in enumerate(bench.evs):
        found = bench.probe(bench.peer_psn, number, ev).entropy
        must(found == ev, f"the answer to a probe on EV {ev:#x} has EV {found:#x}")


def held_ack(bench: Bench) -> None:
    """No message counts as complete before all of its packets have arrived."""
    message = bench.begin().message(3)
    bench.put(message, 0, 2)
    bench.never("a packet of the message is missing", "ACKNOWLEDGE", where=lambda p: p.msn > 0)
    bench.put(message, 1, flags=AGAIN)
    bench.expect("ACKNOWLEDGE", "the message is complete", equal("msn", 1))


def stamped(bench: Bench) -> None:
    """A packet with a timestamp is placed, and its timestamp comes back."""
    message = bench.begin().message()
    bench.put(message, stamp=0x4321)
    found = bench.expect("SACK", "the packet asks", equal("cack", message.first))
    bench.holds(message)
    must(found.stamp == 0x4321, f"the SACK has the timestamp {found.stamp:#x}, not 0x4321")


def counted(bench: Bench) -> None:
    """Received bytes: the UDP datagrams and 40 each, in units of 256, rounded up."""
    message = bench.begin().put_all(3)
    found = bench.expect("SACK", "the last packet asks", equal("cack", message.first + 2 & PSN)).units
    each = 8 + 12 + 4 + 16 + bench.about.pmtu + 4 + 40
    wanted = (3 * each + 255) // 256
    must(found == wanted, f"the SACK counts {found} units, not {wanted}")


def out_of_order_count(bench: Bench) -> None:
    """The count of packets out of order."""
    message = bench.begin().message(6)
    bench.put(message, 1, 2, 4, 5)
    found = bench.expect("SACK", "the last packet asks", lambda p: message.first + 5 & PSN in p.received)
    raise Choice(f"ooo_count is {found.ooo} with packets 1, 2, 4 and 5 of 6")


def quiet(bench: Bench) -> None:
    """A receiver sends no writes."""
    bench.begin().put_all(4)
    bench.never("the device was not asked to write", *WRITES)
