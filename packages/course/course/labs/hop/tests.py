"""Lab 2: the P4 of a uSID hop. Packets go through the student's control, and leave as RFC 9800 says, or not at all."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from common.terminal.counted import counted
from course.bench.bench import Bench, compiled, trace_look
from course.bench.frames import BenchFrame, read
from course.exercise import Exercise, StudentWork, Test
from course.result import Gate, TestOutcome

AROUND = "around_hop.p4"
BLOCK = 0xFCBBBBBB
PACKETS = 6
ZERO = "add neighbours hdr.ipv6.dst_addr:fcbb:bbbb::/48 forward(port:2)"


@dataclass(frozen=True, slots=True)
class DrawnSwitch:
    """The switch of a seed: its own uSID, and its neighbours' with their ports."""

    own: int
    ports: dict[int, int]

    @property
    def entries(self) -> str:
        lines = [f"add my_sid hdr.ipv6.dst_addr:{address([self.own])}/48 shift()"]
        lines += [
            f"add neighbours hdr.ipv6.dst_addr:{address([usid])}/48 forward(port:{port})"
            for usid, port in self.ports.items()
        ]
        return "\n".join(lines)


def address(usids: list[int]) -> ipaddress.IPv6Address:
    value = BLOCK << 96
    for place, usid in enumerate(usids):
        value |= usid << 80 - 16 * place
    return ipaddress.IPv6Address(value)


def switch_of(work: StudentWork) -> DrawnSwitch:
    """Drawn by the seed; uSIDs differ in their low and their high byte."""
    rng = work.rng("switch")
    usids = rng.sample(range(0x1001, 0x3FFF), 5)
    return DrawnSwitch(usids[0], dict(zip(usids[1:], rng.sample(range(2, 9), 4), strict=True)))


Draw = Callable[[Random, DrawnSwitch, int], tuple[BenchFrame, tuple[int, BenchFrame] | None]]
"""A packet by its number in the test, and the port and packet that must leave; None: it must be dropped."""


def packet(usids: list[int], rng: Random, hop_limit: int | None = None) -> BenchFrame:
    limit = rng.randrange(3, 200) if hop_limit is None else hop_limit
    return BenchFrame(address(usids), limit, rng.choice((0, 10, 46)), rng.randbytes(rng.randrange(60, 90)))


def leaving(sent: BenchFrame, usids: list[int]) -> BenchFrame:
    return BenchFrame(address(usids), sent.hop_limit - 1, sent.dscp, sent.payload)


def own_first(rng: Random, switch: DrawnSwitch, number: int) -> tuple[BenchFrame, tuple[int, BenchFrame] | None]:
    after = [rng.choice(list(switch.ports)), *rng.sample(range(0x4000, 0xD000), rng.randrange(0, 3))]
    sent = packet([switch.own, *after], rng)
    return sent, (switch.ports[after[0]], leaving(sent, after))


def full_list(rng: Random, switch: DrawnSwitch, number: int) -> tuple[BenchFrame, tuple[int, BenchFrame] | None]:
    after = [rng.choice(list(switch.ports)), *rng.sample(range(0x4000, 0xD000), 4)]
    sent = packet([switch.own, *after], rng)
    return sent, (switch.ports[after[0]], leaving(sent, after))


def another_first(rng: Random, switch: DrawnSwitch, number: int) -> tuple[BenchFrame, tuple[int, BenchFrame] | None]:
    usids = [rng.choice(list(switch.ports)), switch.own, 0x4444]
    sent = packet(usids, rng)
    return sent, (switch.ports[usids[0]], leaving(sent, usids))


def expired(rng: Random, switch: DrawnSwitch, number: int) -> tuple[BenchFrame, tuple[int, BenchFrame] | None]:
    return packet([switch.own, rng.choice(list(switch.ports))], rng, hop_limit=number % 2), None


def last_hop(rng: Random, switch: DrawnSwitch, number: int) -> tuple[BenchFrame, tuple[int, BenchFrame] | None]:
    """Hop limit 2 is enough for one more hop."""
    after = [rng.choice(list(switch.ports)), 0x3001]
    sent = packet([switch.own, *after], rng, hop_limit=2)
    return sent, (switch.ports[after[0]], leaving(sent, after))


def unknown(rng: Random, switch: DrawnSwitch, number: int) -> tuple[BenchFrame, tuple[int, BenchFrame] | None]:
    return packet([switch.own, 0xD000 + rng.randrange(256), next(iter(switch.ports))], rng), None


def ended(rng: Random, switch: DrawnSwitch, number: int) -> tuple[BenchFrame, tuple[int, BenchFrame] | None]:
    return packet([switch.own], rng), None


def foreign(rng: Random, switch: DrawnSwitch, number: int) -> tuple[BenchFrame, tuple[int, BenchFrame] | None]:
    usids = [switch.own, next(iter(switch.ports))]
    if number % 2:
        return BenchFrame(address(usids), 64, 0, rng.randbytes(64), ether_type=0x0800), None
    return BenchFrame(address(usids), 64, 0, rng.randbytes(64), version=4), None


def builds(work: StudentWork) -> TestOutcome:
    compiled(work, AROUND)
    return TestOutcome(True, "the control compiles", "it does")


def forwards(name: str, expected: str, draw: Draw, more: str = "") -> Callable[[StudentWork], TestOutcome]:
    """The test that some packets leave as they should. `more` are entries beside those of the switch."""

    def run(work: StudentWork) -> TestOutcome:
        switch, rng = switch_of(work), work.rng(name)
        right = 0
        wrong: tuple[str, tuple[str, ...]] | None = None
        for number in range(PACKETS):
            sent, want = draw(rng, switch, number)
            entries = f"{switch.entries}\n{more}"
            bench = Bench(work, AROUND, entries)
            bench.send(1, sent.packed())
            left = bench.out()
            frames = [(out.port, read(out.frame)) for out in left]
            if frames == ([] if want is None else [(want[0], read(want[1].packed()))]):
                right += 1
            elif wrong is None:
                told = f"sent {sent.description}, ether type {sent.ether_type:#06x}, version {sent.version};"
                told += f" own uSID {switch.own:#06x}: "
                wrong = (told + cause(sent, want, frames), trace_look(work, entries, 1, sent.packed()))
        gate = Gate("packets right", right, PACKETS)
        if wrong is not None:
            return TestOutcome(False, expected, wrong[0], (gate,), wrong[1])
        return TestOutcome(True, expected, f"{right} of {PACKETS} packets do", (gate,))

    return run


def cause(sent: BenchFrame, want: tuple[int, BenchFrame] | None, frames: list[tuple[int, BenchFrame | None]]) -> str:
    """The difference in words."""
    if want is None:
        left = frames[0][1]
        told = f"left by port {frames[0][0]}" + (f" {left.description}" if left else "")
        return f"{told}; it must be dropped"
    if not frames:
        return f"nothing left the switch; it must leave by port {want[0]} {want[1].description}"
    port, got = frames[0]
    if got is None:
        return "a frame without an IPv6 header left"
    expected = want[1]
    if len(frames) > 1:
        return f"{counted(len(frames), 'packet')} left; one must"
    if got.destination != expected.destination:
        return f"left to {got.destination}, must be to {expected.destination}: {about(sent, got, expected)}"
    if got.hop_limit != expected.hop_limit:
        return f"left with hop limit {got.hop_limit}, must be {expected.hop_limit}: each hop takes one off"
    if port != want[0]:
        return f"left by port {port}, must be {want[0]}: look the new first uSID up, after the shift"
    return "the destination is right, but other bytes have changed: payload, DSCP and source must stay"


def about(sent: BenchFrame, got: BenchFrame, expected: BenchFrame) -> str:
    """Why a destination is wrong."""
    number, wanted = int(got.destination), int(expected.destination)
    if got.destination == sent.destination:
        return "the list was not shifted"
    if number >> 96 != BLOCK:
        return "the block of 32 bits must stay"
    if sent.destination == expected.destination:
        return "it was shifted, though the first uSID is another node's"
    if number >> 16 == wanted >> 16:
        return "zeros must come in at the end of the list"
    return "the list must move by 16 bits, once"


CASES = (
    ("shift", "its own uSID is shifted away", 3, own_first, "own uSID first: shift by 16 bits, look up, hop limit - 1"),
    ("full", "a full list is shifted", 2, full_list, "six uSIDs: five are left, and 16 zero bits"),
    (
        "transit",
        "another node's uSID is left alone",
        2,
        another_first,
        "first uSID of a neighbour: forward, without a shift",
    ),
    ("expired", "an expired packet is dropped", 2, expired, "hop limit 0 or 1: drop"),
    ("last", "hop limit 2 is enough", 1, last_hop, "hop limit 2: forward with 1"),
    ("unknown", "an unknown uSID is dropped", 1, unknown, "no neighbour has the new first uSID: drop"),
    (
        "ended",
        "a list that ends here is dropped",
        2,
        ended,
        "nothing but the own uSID in the list: drop, even if an entry matches the zeros",
    ),
    ("foreign", "other protocols are dropped", 1, foreign, "no IPv6 header, or another version in it: drop"),
)
LAB = Exercise(
    name="hop",
    title="The P4 of a uSID hop",
    minutes=90,
    tests=(
        Test("builds", "the control compiles", 1, builds),
        *(
            Test(name, title, points, forwards(name, due, packets, *[ZERO] * (name == "ended")))
            for name, title, points, packets, due in CASES
        ),
    ),
)
