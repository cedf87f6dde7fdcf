"""Tests of long queues: marks, trimming, the priority queue. They need ports that are slower than the tester.

A burst fills the queue of one port. Whether the tester was fast enough shows in what leaves: where nothing was marked,
or nothing trimmed, the burst is sent again, because the machine may have paused between two packets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conform.switch.bench import Bench, Probe, Seen
from conform.switch.findings import Arrival
from conform.switch.forwarding import left
from conform.switch.packets import HEADERS

TRIES = 3
SIZE = 1000
"""Of frames that fill a queue: limits count packets, and shorter frames drain sooner."""
MARKED_BURST, FEW = 40, 8
"""Of packets that may not be trimmed: more than the upper threshold of marking, less than the drop threshold."""
NOT_ECT, CE = 0, 3
LAST = 2
"""Packets at the end of a queue that the lower threshold of marking exceeds."""
INNER_LENGTHS = (4, 6), (44, 48)
"""In the payload of the outer header: the inner header's length; length and checksum of UDP."""


def _burst(bench: Bench, probes: Sequence[Probe]) -> Seen:
    return bench.through(bench.hosts()[0], probes)


def _probes(bench: Bench, out: int, count: int, dscp: int, ecn: int | None = 2, size: int = SIZE) -> list[Probe]:
    """Packets through the switch to a port; without `ecn` with any ECN bits."""
    bits = [bench.dice.randrange(4) if ecn is None else ecn for _ in range(count)]
    usids = bench.own, bench.neighbour(out)
    return [bench.probe(bench.hosts()[0], *usids, size=size, traffic_class=dscp << 2 | bit) for bit in bits]


def _again(
    burst: Callable[[], tuple[list[Probe], Seen]], reached: Callable[[list[Probe], Seen], bool]
) -> tuple[list[Probe], Seen]:
    """A burst, again while it has not reached what it is for."""
    for _ in range(TRIES - 1):
        probes, seen = burst()
        if reached(probes, seen):
            return probes, seen
    return burst()


def _marked(probe: Probe, seen: Seen) -> bool:
    return probe.outer.ecn != CE and any(arrival.outer.ecn == CE for arrival in seen[probe.identity])


def marks(bench: Bench) -> None:
    out, dscp = bench.spines()[0], bench.plan.dscp.no_trim

    def burst() -> tuple[list[Probe], Seen]:
        probes = _probes(bench, out, MARKED_BURST, dscp, ecn=None) + _probes(bench, out, LAST, dscp)
        return probes, _burst(bench, probes)

    probes, seen = _again(burst, lambda probes, seen: any(_marked(probe, seen) for probe in probes))
    capable = [probe for probe in probes if probe.outer.ecn not in (NOT_ECT, CE)]
    marked = [probe for probe in capable if _marked(probe, seen)]
    told = f"{len(marked)} of {len(capable)} ECN-capable packets were marked in a burst of {len(probes)}"
    bench.found.judge("SWI-035", bool(marked), told)
    for probe in probes:
        for arrival in seen[probe.identity]:
            before, after = probe.outer, arrival.outer
            if before.ecn == NOT_ECT:
                bench.found.judge("SWI-036", after.ecn == NOT_ECT, f"Not-ECT became {after.ecn}", [arrival])
            if before.ecn == CE:
                bench.found.judge("SWI-037", after.ecn == CE, f"CE became {after.ecn}", [arrival])
            if probe in marked:
                bench.found.judge(
                    "SWI-040", after.dscp == before.dscp, f"DSCP {before.dscp} became {after.dscp}", [arrival]
                )
    late = [probe for probe in probes[-LAST:] if _marked(probe, seen)]
    bench.found.judge("SWI-041", not late, f"{len(late)} of the last {LAST} packets were marked")


def no_marks(bench: Bench) -> None:
    for out in bench.refs:
        (probe,) = _probes(bench, out, 1, bench.plan.dscp.no_trim)
        arrivals = _burst(bench, [probe])
        bench.found.judge("SWI-038", not _marked(probe, arrivals), f"marked at an empty queue of port {out}")


def last_hop_marks(bench: Bench) -> None:
    out = bench.hosts()[1]
    probes = _probes(bench, out, MARKED_BURST, bench.plan.dscp.no_trim)
    seen = _burst(bench, probes)
    marked = sum(_marked(probe, seen) for probe in probes)
    bench.found.judge("SWI-039", not marked, f"{marked} of {len(probes)} packets were marked towards a host")


# --- trimming --------------------------------------------------------------------------------------------------------


def _was_trimmed(probe: Probe, arrival: Arrival) -> bool:
    return len(arrival.frame) < len(probe.frame)


def _some_trimmed(probes: list[Probe], seen: Seen) -> bool:
    return any(_was_trimmed(probe, arrival) for probe in probes for arrival in seen[probe.identity])


def _filled(
    bench: Bench, out: int, more: Callable[[], list[Probe]] = list, beyond: int = FEW
) -> tuple[list[Probe], list[Probe], Seen]:
    """A queue that trims, and behind its burst other packets: the burst, the others, and what left."""
    queues, plan = bench.plan.queues, bench.plan
    limit = plan.threshold_packets(queues.trim_lasthop if out in bench.hosts() else queues.trim, 1.0)
    others: list[Probe] = []

    def burst() -> tuple[list[Probe], Seen]:
        probes = _probes(bench, out, limit + beyond, plan.dscp.trimmable)
        others[:] = more()
        return probes, _burst(bench, [*probes, *others])

    def reached(probes: list[Probe], seen: Seen) -> bool:
        return _some_trimmed(probes, seen) and all(seen[probe.identity] for probe in (*probes, *others))

    probes, seen = _again(burst, reached)
    return probes, others, seen


def trimming(bench: Bench) -> None:
    out = bench.spines()[0]
    probes, _, seen = _filled(bench, out)
    missing = [probe for probe in probes if not seen[probe.identity]]
    some = _some_trimmed(probes, seen)
    told = f"of {len(probes)} packets {len(missing)} are missing" + ("" if some else ", and none was trimmed")
    bench.found.judge("SWI-042", some and not missing, told)
    order = [probe for probe in probes for arrival in seen[probe.identity] if not _was_trimmed(probe, arrival)]
    places = {arrival.frame: at for at, arrival in enumerate(bench.in_order)}
    whole_last = max((places[a.frame] for probe in order for a in seen[probe.identity]), default=-1)
    for probe in probes:
        for arrival in seen[probe.identity]:
            if _was_trimmed(probe, arrival):
                _trimmed(bench, probe, arrival, out)
                bench.found.judge(
                    "SWI-053", places[arrival.frame] < whole_last, "it left behind the data that waited", [arrival]
                )


def _trimmed(bench: Bench, probe: Probe, arrival: Arrival, out: int) -> None:
    """Judge one trimmed packet."""
    plan, frame, outer, sent = bench.plan, arrival.frame, arrival.outer, probe.outer
    size, dscp = plan.trimming.size_bytes, plan.dscp.trimmed
    bench.found.judge("SWI-043", len(frame) == size, f"{len(frame)} bytes are left, {size} were configured", [arrival])
    bench.found.judge("SWI-044", outer.dscp == dscp, f"DSCP {outer.dscp}, TRIMMED is {dscp}", [arrival])
    length = len(frame) - HEADERS
    bench.found.judge("SWI-046", outer.length == length, f"payload length {outer.length} of {length} bytes", [arrival])
    kept, was = bytearray(frame[HEADERS:]), bytearray(probe.frame[HEADERS : len(frame)])
    changed = any(kept[first:last] != was[first:last] for first, last in INNER_LENGTHS)
    bench.found.choice(
        "SWI-047", "they follow the bytes that are left" if changed else "they are those before trimming"
    )
    for first, last in INNER_LENGTHS:
        kept[first:last] = was[first:last] = b""
    bench.found.judge("SWI-048", kept == was, "bytes behind the outer header have changed", [arrival])
    expected = arrival.port, bench.container(bench.neighbour(out)), sent.hop_limit - 1, sent.flow_label
    got = out, outer.destination, outer.hop_limit, outer.flow_label
    right = expected == got and frame[:12] == bench.macs(out, leaving=True)
    bench.found.judge("SWI-049", right, f"left {left([arrival])}, hop limit {outer.hop_limit}", [arrival])


def last_hop_trimming(bench: Bench) -> None:
    probes, _, seen = _filled(bench, bench.hosts()[1])
    dscps = {a.outer.dscp for probe in probes for a in seen[probe.identity] if _was_trimmed(probe, a)}
    expected = bench.plan.dscp.trimmed_lasthop
    bench.found.judge(
        "SWI-045", dscps == {expected}, f"DSCPs {sorted(dscps)} towards a host, TRIMMED_LASTHOP is {expected}"
    )


def _pass_whole(bench: Bench, rule: str, dscp: int, size: int, *, same_dscp: bool = True) -> None:
    """Judge that packets of a class pass a queue that trims as they are."""
    out = bench.spines()[0]
    _, others, seen = _filled(bench, out, lambda: _probes(bench, out, 4, dscp, size=size))
    for probe in others:
        arrivals = seen[probe.identity]
        sizes = [len(arrival.frame) for arrival in arrivals]
        kept = sizes == [len(probe.frame)] and (not same_dscp or arrivals[0].outer.dscp == dscp)
        dscps = [arrival.outer.dscp for arrival in arrivals]
        bench.found.judge(
            rule,
            kept,
            f"a frame of {len(probe.frame)} bytes with DSCP {dscp} left with {sizes}, DSCP {dscps}",
            arrivals,
        )


def never_twice(bench: Bench) -> None:
    _pass_whole(bench, "SWI-050", bench.plan.dscp.trimmed, 300)
    _pass_whole(bench, "SWI-050", bench.plan.dscp.trimmed_lasthop, 300)


def no_trim(bench: Bench) -> None:
    out, dscp = bench.spines()[0], bench.plan.dscp.no_trim
    probes = _probes(bench, out, 70, dscp)
    seen = _burst(bench, probes)
    for probe in probes:
        for arrival in seen[probe.identity]:
            bench.found.judge(
                "SWI-051", not _was_trimmed(probe, arrival), f"{len(arrival.frame)} bytes are left", [arrival]
            )


def control(bench: Bench) -> None:
    _pass_whole(bench, "SWI-052", bench.plan.dscp.control, 154)


def short(bench: Bench) -> None:
    _pass_whole(bench, "SWI-054", bench.plan.dscp.trimmable, bench.plan.trimming.size_bytes - 10, same_dscp=False)


def retransmit(bench: Bench) -> None:
    out = bench.spines()[0]
    _, others, seen = _filled(bench, out, lambda: _probes(bench, out, 4, bench.plan.dscp.trimmable_retransmit))
    trimmed = sum(_was_trimmed(probe, arrival) for probe in others for arrival in seen[probe.identity])
    bench.found.judge("SWI-055", trimmed > 0, f"{trimmed} of {len(others)} retransmissions were trimmed")


def share(bench: Bench) -> None:
    probes, _, seen = _filled(bench, bench.spines()[0], beyond=150)
    whole = [probe for probe in probes if any(not _was_trimmed(probe, a) for a in seen[probe.identity])]
    gone = sum(not seen[probe.identity] for probe in probes)
    bench.found.judge("SWI-056", len(whole) > FEW, f"{len(whole)} of {len(probes)} packets left whole")
    trimmed = len(probes) - len(whole) - gone
    bench.found.choice("SWI-057", "they are dropped" if gone else f"none was dropped of {trimmed}")


def order(bench: Bench) -> None:
    probes = _probes(bench, bench.spines()[0], 30, bench.plan.dscp.no_trim)
    _burst(bench, probes)
    own = {probe.identity for probe in probes}
    left_as = [arrival.outer.source & (1 << 64) - 1 for arrival in bench.in_order]
    came_as = [identity for identity in left_as if identity in own]
    bench.found.judge(
        "SWI-058", came_as == sorted(came_as), f"packets of one queue left as {[n & 0xFFFF for n in came_as]}"
    )


def after(bench: Bench) -> None:
    out = bench.spines()[0]
    _filled(bench, out)
    (probe,) = _probes(bench, out, 1, bench.plan.dscp.trimmable)
    arrivals = _burst(bench, [probe])[probe.identity]
    whole = len(arrivals) == 1 and not _was_trimmed(probe, arrivals[0])
    bench.found.judge("SWI-059", whole, "a packet behind an empty queue was trimmed, or is missing", arrivals)


MARKING = frozenset((marks, no_marks, last_hop_marks))
TRIMMING = frozenset((trimming, last_hop_trimming, never_twice, short, retransmit, share, after))
QUEUES = MARKING | TRIMMING | {no_trim, control, order}
"""Tests that need a queue; the others' names say what else they need."""
