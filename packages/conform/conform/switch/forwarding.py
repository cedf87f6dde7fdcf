"""Tests of forwarding: uN and uA, the container, unchanged bytes, packets that must not be forwarded."""

from __future__ import annotations

from collections.abc import Sequence

from conform.switch.bench import Bench, Probe
from conform.switch.findings import Arrival
from conform.switch.packets import HEADERS, ROUTING, Header, numbered, plain

COUNTED = 5
BLOCK_BITS, TAIL = 96, (1 << 96) - 1


def one(bench: Bench, rule: str, arrivals: Sequence[Arrival], port: int) -> Header | None:
    """Judge whether a packet left once, by this port; its outer header if so."""
    right = len(arrivals) == 1 and arrivals[0].port == port
    bench.judge(rule, right, f"expected once by port {port}, left {left(arrivals)}", arrivals)
    return arrivals[0].outer if right else None


def left(arrivals: Sequence[Arrival]) -> str:
    """By which ports a packet left, in words."""
    if not arrivals:
        return "by no port"
    return "by port " + ", ".join(
        f"{arrival.port} to {numbered(arrival.outer.destination).hex(':', 2)}" for arrival in arrivals
    )


def _shifted(bench: Bench, rules: tuple[str, ...], out: int, own: Sequence[int], rest: list[int]) -> None:
    """Send the switch's uSIDs and others behind them; judge port, shift and block by three rules."""
    came = bench.dice.choice(list(bench.refs))
    probe = bench.probe(came, *own, *rest)
    arrivals = bench.through(came, [probe])[probe.identity]
    leaves, shift, block = rules
    if (outer := one(bench, leaves, arrivals, out)) is None:
        return
    expected = bench.container(*rest)
    bench.same(shift, f"{outer.destination & TAIL:024x}", f"{expected & TAIL:024x}", arrivals)
    bench.same(block, f"{outer.destination >> BLOCK_BITS:08x}", f"{expected >> BLOCK_BITS:08x}", arrivals)


def un(bench: Bench) -> None:
    for length in (1, 2, 3, 4, 5, 5):
        out = bench.dice.choice(list(bench.refs))
        rest = [bench.neighbour(out), *(bench.dice.randrange(1, 1 << 16) for _ in range(length - 1))]
        rules = ("SWI-004",) * 3 if length == 5 else ("SWI-001", "SWI-002", "SWI-003")
        _shifted(bench, rules, out, [bench.own], rest)


def twice(bench: Bench) -> None:
    out = bench.dice.choice(list(bench.refs))
    probe = bench.probe(1, bench.own, bench.own, bench.neighbour(out))
    arrivals = bench.through(1, [probe])[probe.identity]
    right = all(a.port == out and a.outer.destination == bench.container(bench.neighbour(out)) for a in arrivals)
    bench.judge("SWI-005", right, f"left {left(arrivals)}", arrivals)


def ua(bench: Bench) -> None:
    for out in bench.refs:
        rest = [bench.dice.choice([bench.unknown(), bench.neighbour(3)]), bench.unknown()]
        _shifted(bench, ("SWI-006", "SWI-007", "SWI-003"), out, [bench.adjacency(out)], rest)


def un_and_ua(bench: Bench) -> None:
    for out in bench.refs:
        own = [bench.own, bench.adjacency(out)]
        _shifted(bench, ("SWI-008", "SWI-008", "SWI-003"), out, own, [bench.unknown(), bench.unknown()])


def transit(bench: Bench) -> None:
    for rule, port in [*(("SWI-009", port) for port in bench.spines()), *(("SWI-010", port) for port in bench.hosts())]:
        rest = [bench.unknown()] if rule == "SWI-009" else []
        came = bench.dice.choice(list(bench.refs))
        probe = bench.probe(came, bench.neighbour(port), *rest)
        arrivals = bench.through(came, [probe])[probe.identity]
        if outer := one(bench, rule, arrivals, port):
            bench.judge(rule, outer.destination == probe.outer.destination, f"left {left(arrivals)}", arrivals)


def nowhere(bench: Bench, rule: str, *usids: int, **fields: int) -> None:
    """Judge that a packet leaves by no port, and record what the switch says about it."""
    probe = bench.probe(1, *usids, **fields)
    arrivals = bench.through(1, [probe])[probe.identity]
    told = [a for a in arrivals if a.outer.destination == probe.outer.source]
    forwarded = [a for a in arrivals if a not in told]
    answer = (
        f"; it answers with ICMPv6 type {told[0].frame[HEADERS]}, code {told[0].frame[HEADERS + 1]}" if told else ""
    )
    bench.judge(rule, not forwarded, f"left {left(forwarded)}{answer}", forwarded)


def list_end(bench: Bench) -> None:
    nowhere(bench, "SWI-011", bench.own)
    if bench.device.about.adjacencies:
        nowhere(bench, "SWI-011", bench.own, bench.adjacency(3))


def unknown(bench: Bench) -> None:
    nowhere(bench, "SWI-012", bench.unknown(), bench.neighbour(3))
    nowhere(bench, "SWI-012", bench.own, bench.unknown(), bench.neighbour(3))


def unknown_counted(bench: Bench) -> None:
    if (counter := bench.device.unknown_drops) is None:
        return bench.unreachable("SWI-013", "the device's file has no command that prints the counter")
    before = bench.wire.ask("unknown", counter)
    bench.through(1, [bench.probe(1, bench.unknown()) for _ in range(COUNTED)])
    count = int(bench.wire.ask("unknown", counter)) - int(before)
    return bench.judge("SWI-013", count == COUNTED, f"{COUNTED} packets, the counter went up by {count}")


def zero_inside(bench: Bench) -> None:
    nowhere(bench, "SWI-014", bench.own, 0, bench.neighbour(3))


def routing_header(bench: Bench) -> None:
    segments = numbered(bench.container(bench.neighbour(4)))
    for usids in ((bench.own, bench.neighbour(3)), (bench.neighbour(3), bench.unknown())):
        identity, outer = bench.header(*usids, next_header=ROUTING)
        behind = bytes.fromhex("3b02040100000000") + segments + bench.dice.randbytes(20)
        arrivals = bench.through(1, [Probe(identity, plain(bench.macs(1), outer, behind))])[identity]
        if one(bench, "SWI-015", arrivals, 3):
            kept = arrivals[0].frame[HEADERS:] == behind
            bench.judge("SWI-015", kept, "the routing header or what is behind it has changed", arrivals)


def same_bytes(bench: Bench) -> None:
    largest = bench.plan.links.mtu_bytes
    for size in (HEADERS + 1, 103, 128, 1514, bench.dice.randrange(200, largest), largest):
        came, out = bench.dice.choice(list(bench.refs)), bench.dice.choice(list(bench.refs))
        traffic, hops = bench.dice.randrange(256), bench.dice.randrange(2, 256)
        usids = bench.own, bench.neighbour(out)
        probe = bench.probe(came, *usids, size=size, traffic_class=traffic, hop_limit=hops)
        sent, arrivals = probe.outer, bench.through(came, [probe])[probe.identity]
        if not (got := one(bench, "SWI-016", arrivals, out)):
            continue
        frame, payload = arrivals[0].frame, probe.frame[HEADERS:]
        kept = frame[HEADERS : HEADERS + len(payload)] == payload
        bench.judge("SWI-016", kept, f"the payload of a frame of {size} bytes has changed", arrivals)
        bench.same("SWI-017", got.flow_label, sent.flow_label, arrivals)
        bench.same("SWI-018", got.traffic_class, sent.traffic_class, arrivals)
        bench.same("SWI-019", f"{got.source:032x}", f"{sent.source:032x}", arrivals)
        bench.same("SWI-020", frame[HEADERS : HEADERS + 40].hex(), payload[:40].hex(), arrivals)
        bench.same("SWI-021", (got.length, got.next_header), (sent.length, sent.next_header), arrivals)
        bench.same("SWI-023", frame[:12].hex(":"), bench.macs(out, leaving=True).hex(":"), arrivals)
        bench.same("SWI-025", got.hop_limit, hops - 1, arrivals)


def largest(bench: Bench) -> None:
    probe = bench.probe(1, bench.own, bench.neighbour(3), size=14 + bench.plan.links.mtu_bytes)
    arrivals = bench.through(1, [probe])[probe.identity]
    if one(bench, "SWI-022", arrivals, 3):
        bench.same("SWI-022", len(arrivals[0].frame), len(probe.frame), arrivals)


def back(bench: Bench) -> None:
    for port in (1, 3):
        probe = bench.probe(port, bench.own, bench.neighbour(port))
        one(bench, "SWI-024", bench.through(port, [probe])[probe.identity], port)


def not_ipv6(bench: Bench) -> None:
    broadcast = b"\xff" * 6 + bench.macs(1)[6:]
    request = bytes.fromhex("00010800060400010200000000010a0000010000000000000a000002")
    for frame in (broadcast + b"\x08\x06" + request, bench.macs(1) + b"\x88\xb5" + bench.dice.randbytes(60)):
        before = len(bench.strange)
        bench.through(1, [Probe(0, frame.ljust(60, b"\0"))])
        flooded = [a for a in bench.strange[before:] if a.frame[12 : len(frame)] == frame[12:]]
        bench.judge("SWI-033", not flooded, f"left by port {', '.join(str(a.port) for a in flooded)}", flooded)
        del bench.strange[before:]


def version(bench: Bench) -> None:
    probe = bench.probe(1, bench.own, bench.neighbour(3))
    wrong = probe.frame[:14] + bytes([0x50 | probe.frame[14] & 0xF]) + probe.frame[15:]
    arrivals = bench.through(1, [probe._replace(frame=wrong)])[probe.identity]
    bench.judge("SWI-034", not arrivals, f"left {left(arrivals)}", arrivals)


def restart(bench: Bench) -> None:
    if bench.device.restart is None:
        return bench.unreachable("SWI-060", "the device's file has no command that restarts the switch")
    bench.wire.ask("restart", bench.device.restart)
    for out in bench.refs:
        _shifted(bench, ("SWI-060",) * 3, out, [bench.own], [bench.neighbour(out), bench.unknown()])
    return None


def quiet(bench: Bench) -> None:
    kinds = sorted({f"ethertype {arrival.frame[12:14].hex()} by port {arrival.port}" for arrival in bench.strange})
    bench.choice("SWI-061", f"{len(bench.strange)} frames" + "".join(f", {kind}" for kind in kinds))
