"""Tests of the hop limit, and of the ICMPv6 messages about it."""

from __future__ import annotations

from collections.abc import Sequence

from conform.switch.bench import Bench, Probe
from conform.switch.findings import Arrival
from conform.switch.forwarding import left, one
from conform.switch.packets import HEADERS, ICMPV6, Header, icmp_sum, plain

MANY = 200
TRIES = 12
"""Each waits a quarter of a second for an answer: Linux gives one a second to each address."""
MINIMUM_MTU = 1280
TIME_EXCEEDED = bytes([3, 0])
"""Type and code."""


def counted(bench: Bench) -> None:
    for own in ([bench.own], []):
        probe = bench.probe(1, *own, bench.neighbour(3), hop_limit=2)
        arrivals = bench.through(1, [probe])[probe.identity]
        if outer := one(bench, "SWI-026", arrivals, 3):
            bench.same("SWI-026", outer.hop_limit, 1, arrivals)


def used_up(bench: Bench) -> None:
    for hops in (0, 1):
        for own in ([bench.own], []):
            probe = bench.probe(1, *own, bench.neighbour(3), hop_limit=hops)
            arrivals = bench.through(1, [probe])[probe.identity]
            forwarded = [a for a in arrivals if a.outer.next_header != ICMPV6]
            bench.judge("SWI-027", not forwarded, f"hop limit {hops}, left {left(forwarded)}", forwarded)


def _answer(bench: Bench, size: int) -> tuple[Probe, Sequence[Arrival]]:
    """A packet with hop limit 1 and what is said about it; again while nothing is, for answers are limited."""
    for _ in range(TRIES):
        probe = bench.probe(1, bench.own, bench.neighbour(3), hop_limit=1, size=size)
        if told := bench.through(1, [probe], linger=True)[probe.identity]:
            break
    return probe, told


def time_exceeded(bench: Bench) -> None:
    if not bench.device.about.answers:
        for rule in ("SWI-028", "SWI-029", "SWI-030"):
            bench.unreachable(rule, "the device's file says that the switch sends no ICMPv6 messages")
        return
    for size in (300, 2000):
        probe, told = _answer(bench, size)
        right = len(told) == 1 and told[0].port == 1 and told[0].frame[HEADERS : HEADERS + 2] == TIME_EXCEEDED
        bench.judge("SWI-028", right, f"{len(told)} messages about a packet of {size} bytes", told)
        if not right:
            return
        outer, message = told[0].outer, told[0].frame[HEADERS:][: told[0].outer.length]
        sound = not icmp_sum(outer.source, outer.destination, message) and 0 < outer.source >> 120 < 0xFF
        bench.judge("SWI-029", sound, f"source {outer.source:032x}, checksum {message[2:4].hex()}", told)
        quoted, packet = Header.of(message[8:48]), probe.outer
        begins = message[16:32] == probe.frame[22:38] and quoted.flow_label == packet.flow_label
        rest = message[48:] == probe.frame[HEADERS : HEADERS + len(message) - 48]
        fits = len(message) + 40 <= MINIMUM_MTU
        seen = f"a message of {len(message) + 40} bytes about a frame of {size}"
        bench.judge("SWI-030", begins and rest and fits, seen, told)


def no_answer(bench: Bench) -> None:
    identity, outer = bench.header(bench.own, bench.neighbour(3), hop_limit=1, next_header=ICMPV6)
    error = bytes([1, 0, 0, 0, 0, 0, 0, 0]) + bench.dice.randbytes(48)
    arrivals = bench.through(1, [Probe(identity, plain(bench.macs(1), outer, error))])[identity]
    bench.judge("SWI-031", not arrivals, f"left {left(arrivals)}", arrivals)


def answer_rate(bench: Bench) -> None:
    if not bench.device.about.answers:
        return bench.unreachable("SWI-032", "the device's file says that the switch sends no ICMPv6 messages")
    probes = [bench.probe(1, bench.own, bench.neighbour(3), hop_limit=1, size=120) for _ in range(MANY)]
    seen = bench.through(1, probes)
    told = sum(bool(seen[probe.identity]) for probe in probes)
    return bench.judge("SWI-032", told < MANY, f"{told} of {MANY} packets at once were answered")
