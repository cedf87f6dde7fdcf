"""Tests of long queues: marks, trimming, the priority queue. They need ports that are slower than the tester.

A burst fills the queue of one port. Whether the tester was fast enough shows in what leaves: where nothing was marked,
or nothing trimmed, the burst is sent again, because the machine may have paused between two packets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conform.switch.bench import Bench, Probe, Seen
from conform.switch.findings import Arrival
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

    def reached(probes: list[Probe], seen: Seen) -> bool:
        some = any(_marked(probe, seen) for probe in probes)
        return some and not any(_marked(probe, seen) for probe in probes[-LAST:])

    probes, seen = _again(burst, reached)
    capable = [probe for probe in probes if probe.outer.ecn not in (NOT_ECT, CE)]
    marked = [probe for probe in capable if _marked(probe, seen)]
    told = f"{len(marked)} of {len(capable)} ECN-capable packets were marked in a burst of {len(probes)}"
    bench.judge("SWI-035", bool(marked), told)
    for probe in probes:
        for arrival in seen[probe.identity]:
            before, after = probe.outer, arrival.outer
            if before.ecn == NOT_ECT:
                bench.same("SWI-036", after.ecn, NOT_ECT, [arrival])
            if before.ecn == CE:
                bench.same("SWI-037", after.ecn, CE, [arrival])
            if probe in marked:
                bench.same("SWI-040", after.dscp, before.dscp, [arrival])
    late = [probe for probe in probes[-LAST:] if _marked(probe, seen)]
    bench.judge("SWI-041", not late, f"{len(late)} of the last {LAST} packets were marked")


def no_marks(bench: Bench) -> None:
    for out in bench.refs:
        probes = [_probes(bench, out, 1, bench.plan.dscp.no_trim)[0] for _ in range(TRIES)]
        marked = [_marked(probe, _burst(bench, [probe])) for probe in probes]  # markers may wait behind the first
        bench.judge("SWI-038", not all(marked), f"marked at an empty queue of port {out}")


def last_hop_marks(bench: Bench) -> None:
    out = bench.hosts()[1]
    probes = _probes(bench, out, MARKED_BURST, bench.plan.dscp.no_trim)
    seen = _burst(bench, probes)
    marked = sum(_marked(probe, seen) for probe in probes)
    bench.judge("SWI-039", not marked, f"{marked} of {len(probes)} packets were marked towards a host")


# --- trimming --------------------------------------------------------------------------------------------------------


def _was_trimmed(probe: Probe, arrival: Arrival) -> bool:
    return len(arrival.frame) < len(probe.frame)


def _some_trimmed(probes: list[Probe], seen: Seen) -> bool:
    return any(_was_trimmed(probe, arrival) for probe in probes for arrival in seen[probe.identity])


def _filled(
    bench: Bench, out: int, more: Callable[[], list[Probe]] = list, beyond: int = FEW, dscp: int | None = None
) -> tuple[list[Probe], list[Probe], Seen]:
    """A queue that trims, and behind its burst other packets: the burst, the others, and what left."""
    queues, plan = bench.plan.queues, bench.plan
    limit = plan.threshold_packets(queues.trim_lasthop if out in bench.hosts() else queues.trim, 1.0)
    others: list[Probe] = []

    def burst() -> tuple[list[Probe], Seen]:
        probes = _probes(bench, out, limit + beyond, plan.dscp.trimmable if dscp is None else dscp)
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
    bench.judge("SWI-042", some and not missing, told)
    order = [probe for probe in probes for arrival in seen[probe.identity] if not _was_trimmed(probe, arrival)]
    places = {arrival.frame: at for at, arrival in enumerate(bench.in_order)}
    whole_last = max((places[a.frame] for probe in order for a in seen[probe.identity]), default=-1)
    for probe in probes:
        for arrival in seen[probe.identity]:
            if _was_trimmed(probe, arrival):
                _trimmed(bench, probe, arrival, out)
                first = places[arrival.frame] < whole_last
                bench.judge("SWI-053", first, "it left behind the data that waited", [arrival])


def _trimmed(bench: Bench, probe: Probe, arrival: Arrival, out: int) -> None:
    """Judge one trimmed packet."""
    plan, frame, outer, sent = bench.plan, arrival.frame, arrival.outer, probe.outer
    bench.same("SWI-043", len(frame), plan.trimming.size_bytes, [arrival])
    bench.same("SWI-044", outer.dscp, plan.dscp.trimmed, [arrival])
    bench.same("SWI-046", outer.length, len(frame) - HEADERS, [arrival])
    kept, was = bytearray(frame[HEADERS:]), bytearray(probe.frame[HEADERS : len(frame)])
    changed = any(kept[first:last] != was[first:last] for first, last in INNER_LENGTHS)
    bench.choice("SWI-047", "they follow the bytes that are left" if changed else "they are those before trimming")
    for first, last in INNER_LENGTHS:
        kept[first:last] = was[first:last] = b""
    bench.judge("SWI-048", kept == was, "bytes behind the outer header have changed", [arrival])
    expected = (
        out,
        bench.container(bench.neighbour(out)),
        sent.hop_limit - 1,
        sent.flow_label,
        bench.macs(out, leaving=True),
    )
    got = arrival.port, outer.destination, outer.hop_limit, outer.flow_label, frame[:12]
    bench.same("SWI-049", got, expected, [arrival])


def last_hop_trimming(bench: Bench) -> None:
    probes, _, seen = _filled(bench, bench.hosts()[1])
    dscps = {a.outer.dscp for probe in probes for a in seen[probe.identity] if _was_trimmed(probe, a)}
    bench.same("SWI-045", dscps, {bench.plan.dscp.trimmed_lasthop})


def _pass_whole(bench: Bench, rule: str, dscp: int, size: int, *, same_dscp: bool = True) -> None:
    """Judge that packets of a class pass a queue that trims as they are."""
    out = bench.spines()[0]
    _, others, seen = _filled(bench, out, lambda: _probes(bench, out, 4, dscp, size=size))
    for probe in others:
        arrivals = seen[probe.identity]
        left_as = [(len(arrival.frame), arrival.outer.dscp if same_dscp else dscp) for arrival in arrivals]
        bench.same(rule, left_as, [(len(probe.frame), dscp)], arrivals)


def never_twice(bench: Bench) -> None:
    _pass_whole(bench, "SWI-050", bench.plan.dscp.trimmed, 300)
    _pass_whole(bench, "SWI-050", bench.plan.dscp.trimmed_lasthop, 300)


def no_trim(bench: Bench) -> None:
    out, dscp = bench.spines()[0], bench.plan.dscp.no_trim
    probes = _probes(bench, out, 70, dscp)
    seen = _burst(bench, probes)
    for probe in probes:
        for arrival in seen[probe.identity]:
            bench.same("SWI-051", len(arrival.frame), len(probe.frame), [arrival])


def control(bench: Bench) -> None:
    _pass_whole(bench, "SWI-052", bench.plan.dscp.control, 154)


def short(bench: Bench) -> None:
    _pass_whole(bench, "SWI-054", bench.plan.dscp.trimmable, bench.plan.trimming.size_bytes - 10, same_dscp=False)


def retransmit(bench: Bench) -> None:
    probes, _, seen = _filled(bench, bench.spines()[0], dscp=bench.plan.dscp.trimmable_retransmit)
    bench.judge("SWI-055", _some_trimmed(probes, seen), f"none of {len(probes)} retransmissions was trimmed")


def share(bench: Bench) -> None:
    probes, _, seen = _filled(bench, bench.spines()[0], beyond=150)
    whole = [probe for probe in probes if any(not _was_trimmed(probe, a) for a in seen[probe.identity])]
    gone = sum(not seen[probe.identity] for probe in probes)
    bench.judge("SWI-056", len(whole) > FEW, f"{len(whole)} of {len(probes)} packets left whole")
    trimmed = len(probes) - len(whole) - gone
    bench.choice("SWI-057", "they are dropped" if gone else f"none was dropped of {trimmed}")


def order(bench: Bench) -> None:
    probes = _probes(bench, bench.spines()[0], 30, bench.plan.dscp.no_trim)
    _burst(bench, probes)
    own = {probe.identity for probe in probes}
    left_as = [arrival.outer.source & (1 << 64) - 1 for arrival in bench.in_order]
    came_as = [identity for identity in left_as if identity in own]
    bench.same("SWI-058", came_as, sorted(came_as))


def after(bench: Bench) -> None:
    out = bench.spines()[0]
    _filled(bench, out)
    whole = 0
    for probe in _probes(bench, out, TRIES, bench.plan.dscp.trimmable):
        arrivals = _burst(bench, [probe])[probe.identity]
        whole += len(arrivals) == 1 and not _was_trimmed(probe, arrivals[0])
    bench.judge("SWI-059", whole > 0, "packets behind an empty queue were trimmed, or are missing")


MARKING = frozenset((marks, no_marks, last_hop_marks))
TRIMMING = frozenset((trimming, last_hop_trimming, never_twice, short, retransmit, share, after))
QUEUES = MARKING | TRIMMING | {no_trim, control, order}
"""Tests that need a queue; the others' names say what else they need."""
