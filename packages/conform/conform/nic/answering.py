"""Tests of a responder: completions, and answers to probes and timestamps."""

from __future__ import annotations

from conform.nic import frames
from conform.nic.bench import Bench, probed
from conform.nic.frames import AGAIN, PSN, WRITES
from conform.nic.receiving import ends, whole
from conform.result import Broken, Choice


def immediate(bench: Bench) -> None:
    """An immediate is delivered with the length of its message."""
    message = bench.begin(receives=1).message(3, imm=0xC0FFEE)
    for n in range(3):
        bench.put(message, n)
    found = bench.completion()
    if found != f"imm:{0xC0FFEE}:{3 * bench.about.pmtu}":
        raise Broken(f"the completion is {found or 'missing'}, not imm:{0xC0FFEE}:{3 * bench.about.pmtu}")


def immediate_order(bench: Bench) -> None:
    """Immediates are delivered in the order of sending and not of arrival."""
    bench.begin(receives=4)
    messages = [bench.message(imm=0xA0 + number) for number in range(4)]
    for number in (2, 1, 3, 0):
        bench.put(messages[number], 0)
    found = [bench.completion() for _ in messages]
    wanted = [f"imm:{0xA0 + number}:{bench.about.pmtu}" for number in range(4)]
    if found != wanted:
        raise Broken(f"the completions are {found}, not {wanted}")


def immediate_waits(bench: Bench) -> None:
    """An immediate waits for a write before it that is not complete."""
    bench.begin(receives=1)
    before, message = bench.message(2), bench.message(imm=7)
    bench.put(before, 0)
    bench.put(message, 0)
    bench.settle()
    if early := bench.completions():
        raise Broken(f"{early[0]} was delivered before the write in front of it had arrived")
    bench.put(before, 1)
    if not bench.completion():
        raise Broken("the immediate was not delivered once everything before it had arrived")


def immediate_once(bench: Bench) -> None:
    """Copies deliver an immediate once."""
    message = bench.begin(receives=3).message(imm=7)
    for _ in range(3):
        bench.put(message, 0)
    bench.settle()
    found = bench.completions()
    if len(found) != 1:
        raise Broken(f"three copies of a write with immediate brought {len(found)} completions")


def no_completion(bench: Bench) -> None:
    """A plain write takes no receive."""
    message = bench.begin(receives=1).message(2)
    bench.put(message, 0)
    bench.put(message, 1)
    whole(bench, message)
    if found := bench.completions():
        raise Broken(f"a plain write brought the completion {found[0]}")


def empty(bench: Bench) -> None:
    """A write with immediate of no bytes; neither its address nor its key is one of the device's."""
    message = bench.begin(receives=1).message(size=0, imm=0xE)
    bench.put(message, 0, va=1 << 40, rkey=bench.to.rkey ^ 1)
    bench.expect("ACKNOWLEDGE", "an empty write is complete", lambda p: p.msn == 1 and p.syndrome == frames.ACK)
    if (found := bench.completion()) != "imm:14:0":
        raise Broken(f"the completion is {found or 'missing'}, not imm:14:0")


def empty_plain(bench: Bench) -> None:
    """A write of no bytes."""
    message = bench.begin().message(size=0)
    bench.put(message, 0)
    bench.expect("ACKNOWLEDGE", "an empty write is complete", lambda p: p.msn == 1 and p.syndrome == frames.ACK)


def no_receive(bench: Bench) -> None:
    """A write with immediate without a receive ends the queue pair: MRC has no RNR."""
    message = bench.begin(receives=0).message(imm=7)
    bench.put(message, 0)
    bench.expect("ACKNOWLEDGE", "no receive is posted", lambda p: p.syndrome >= 0x60)


def too_many(bench: Bench) -> None:
    """More writes with immediate in flight than were granted."""
    bench.begin(receives=4, wimm=2)
    hole = bench.message()
    for _ in range(3):
        bench.put(bench.message(imm=1), 0)
    assert hole.count == 1
    ends(bench, "a third write with immediate where two were granted")


def probe(bench: Bench, number: int = 0x123) -> None:
    """A reliability probe is answered with its id."""
    message = bench.begin().message(2)
    bench.put(message, 1, flags=0)
    body = bench.to.probe(message.first, number)
    bench.send(bench.to.seal(body, bench.evs[0], "trimmable"), bench.evs[0], "reliability probe")
    found = bench.expect("SACK", "the probe is answered", probed(number))
    if found.received != [message.first + 1 & PSN]:
        raise Broken(f"the answer says that {found.received} have arrived, not {[message.first + 1 & PSN]}")


def probe_high(bench: Bench) -> None:
    """A probe's id has 16 bits without a sign."""
    probe(bench, 0x8001)


def probe_takes_no_psn(bench: Bench) -> None:
    """A probe uses up no PSN."""
    message = bench.begin().message()
    for number in (1, 2):
        body = bench.to.probe(message.first, number)
        bench.send(bench.to.seal(body, bench.evs[0], "trimmable"), bench.evs[0], "reliability probe")
        bench.expect("SACK", "the probe is answered", probed(number))
    bench.put(message, 0)
    whole(bench, message)


def probe_echo(bench: Bench) -> None:
    """The answer to a probe has the probe's EV."""
    bench.begin()
    for number, ev in enumerate(bench.evs):
        bench.send(bench.to.seal(bench.to.probe(bench.peer_psn, number), ev, "trimmable"), ev, "reliability probe")
        found = bench.expect("SACK", "the probe is answered", probed(number))
        if found.entropy != ev:
            raise Broken(f"the answer to a probe on EV {ev:#x} has EV {found.entropy:#x}")


def held_ack(bench: Bench) -> None:
    """No message counts as complete before all of its packets have arrived."""
    message = bench.begin().message(3)
    bench.put(message, 0)
    bench.put(message, 2)
    bench.never("a packet of the message is missing", "ACKNOWLEDGE", where=lambda p: p.msn > 0)
    bench.put(message, 1, flags=AGAIN)
    bench.expect("ACKNOWLEDGE", "the message is complete", lambda p: p.msn == 1)


def stamped(bench: Bench) -> None:
    """A packet with a timestamp is placed, and its timestamp comes back."""
    message = bench.begin().message()
    bench.put(message, 0, stamp=0x4321)
    found = bench.expect("SACK", "the packet asks", lambda p: p.cack == message.first)
    bench.holds(message)
    if found.stamp != 0x4321:
        raise Broken(f"the SACK has the timestamp {found.stamp:#x}, not 0x4321")


def counted(bench: Bench) -> None:
    """Received bytes: the UDP datagrams and 40 each, in units of 256, rounded up."""
    message = bench.begin().message(3)
    for n in range(3):
        bench.put(message, n)
    found = bench.expect("SACK", "the last packet asks", lambda p: p.cack == message.first + 2 & PSN)
    each = 8 + 12 + 4 + 16 + bench.about.pmtu + 4 + 40
    if found.units != (3 * each + 255) // 256:
        raise Broken(f"the SACK counts {found.units} units, not {(3 * each + 255) // 256}")


def out_of_order_count(bench: Bench) -> None:
    """The count of packets out of order."""
    message = bench.begin().message(6)
    for n in (1, 2, 4, 5):
        bench.put(message, n)
    found = bench.expect("SACK", "the last packet asks", lambda p: message.first + 5 & PSN in p.received)
    raise Choice(f"ooo_count is {found.ooo} with packets 1, 2, 4 and 5 of 6")


def quiet(bench: Bench) -> None:
    """A receiver sends no writes."""
    message = bench.begin().message(4)
    for n in range(4):
        bench.put(message, n)
    bench.never("the device was not asked to write", *WRITES)
