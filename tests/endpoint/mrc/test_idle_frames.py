"""Frames that ask for nothing: a driver that turns to other things after them loses nothing, to the last packet."""

from random import Random
from typing import Any

import pytest

from endpoint.roce.endpoint import RoceEndpoint
from tests.helpers.transport import Bench, Flow, Packet, Wire

PACKET = 4096


class Turning(Wire):
    """Each host is asked once after what happens, as in virtual time; `heedful` hosts are not after idle frames."""

    def __init__(self, *, heedful: bool, **settings: Any) -> None:
        self.heedful = heedful
        self.idle = self.asked = 0
        super().__init__(**settings)

    def _pump(self, host: str) -> None:
        transport = self.transports[host]
        for port, frame in transport.packets_to_send(self.now_ns, 64):
            self._send(host, port, frame)
        while (event := transport.next_event()) is not None:
            self.journal.append(f"{event.t_ns} {self.now_ns} {host} {event.kind} {dict(event.fields)}")
        self._set_timer(host)

    def _arrive(self, host: str, port: int, frame: bytes) -> None:
        if not self.host_up[host, port]:
            return
        idle = self.transports[host].receive(port, [frame], self.now_ns)
        self.idle += idle
        self.asked += not idle
        if not (idle and self.heedful):
            self._pump(host)


def life(seed: int, *, heedful: bool, **settings: Any) -> tuple[list[Any], int, int]:
    """All that three hosts do, several flows each, while paths lose, repeat, reorder and trim; frames idle, and not."""
    wire = Turning(heedful=heedful, hosts=3, seed=seed, evs_per_plane=4, **settings)
    chance = Random(seed)
    hosts = ["h0", "h1", "h2"]
    flows = [
        Flow(wire, src, dst, seed=seed + number, size=1 << 18)
        for number, (src, dst) in enumerate((src, dst) for src in hosts for dst in hosts if src != dst)
    ]
    for link in chance.sample([*wire.links.values()], len(wire.links) // 3):
        link.faults.loss, link.faults.duplicate = chance.choice([0, 0.02]), chance.choice([0, 0.02])
        link.faults.reorder, link.faults.reorder_ns = chance.choice([0, 0.05]), 3 * wire.base_rtt_ns
    for number in range(24):
        flow = chance.choice(flows)

        def post(flow: Flow = flow, number: int = number) -> None:
            flow.post(chance.randrange(1, 12 * PACKET), immediate=number if number % 3 == 0 else None)
            wire.kick(flow.src)

        wire.at(chance.randrange(4 * wire.base_rtt_ns), post)
    wire.at(2 * wire.base_rtt_ns, lambda: wire.set_port("h1", 2, False))
    wire.at(5 * wire.base_rtt_ns, lambda: wire.set_port("h1", 2, True))
    seen: list[Any] = []
    for trips in range(1, 40):
        wire.run(trips * wire.base_rtt_ns)
        seen.append([flow.finished for flow in flows])
        seen.append([(host, nic.counters(), nic.rng.getstate()) for host, nic in wire.transports.items()])
        seen.append([qp.counters() for flow in flows for qp in (flow.qp, flow.remote)])
    seen += [wire.journal, [flow.immediates for flow in flows], [bytes(flow.sink) for flow in flows]]
    return seen, wire.idle, wire.asked


@pytest.mark.parametrize("seed", range(6))
def test_hosts_that_rest_after_idle_frames_live_the_same_life(seed: int) -> None:
    ours, idle, asked = life(seed, heedful=True)
    expected, idle_too, _ = life(seed, heedful=False)
    for number, (one, other) in enumerate(zip(ours, expected, strict=True)):
        assert one == other, f"step {number}"
    assert idle == idle_too > 20
    assert asked > 20


def test_no_frame_is_idle_for_the_baseline() -> None:
    seen, idle, asked = life(1, heedful=True, make=RoceEndpoint)
    assert seen
    assert (idle, asked > 20) == (0, True)


def begun() -> tuple[Bench, list[Packet]]:
    """A write of eight packets on its way, of which the first has come; nothing of that is left to do."""
    bench = Bench()
    first, *rest = bench.write(8)
    assert not bench.b.receive(first.port, [first.frame], bench.now_ns)  # reverse EVs are now to be kept fresh
    bench.b.packets_to_send(bench.now_ns, 64)
    while bench.b.next_event() is not None:
        pass
    return bench, rest


def test_what_is_placed_is_idle_until_an_answer_is_due() -> None:
    bench, rest = begun()
    found = []
    for packet in rest:
        before = bench.b.next_timer_ns()
        found.append(bench.b.receive(packet.port, [packet.frame], bench.now_ns))
        assert not found[-1] or bench.b.next_timer_ns() == before
        assert bool(bench.b.packets_to_send(bench.now_ns, 64)) is not found[-1]
    assert found[0] is True
    assert found[-1] is False  # the last packet of a write asks for an answer


def test_frames_of_one_call_are_idle_only_together() -> None:
    bench, rest = begun()
    assert bench.b.receive(rest[0].port, [packet.frame for packet in rest[:2]], bench.now_ns)
    assert not bench.b.receive(rest[0].port, [packet.frame for packet in rest[2:]], bench.now_ns)


def test_damaged_and_repeated_frames_are_never_idle() -> None:
    bench, (second, third, *_) = begun()
    damaged = bytes(third.frame[:-1]) + bytes([third.frame[-1] ^ 1])
    assert bench.b.receive(second.port, [second.frame], bench.now_ns)
    for frame in (damaged, third.frame[:100], b"", second.frame):
        assert not bench.b.receive(second.port, [frame], bench.now_ns)


def test_a_frame_is_not_idle_while_an_event_waits_to_be_taken() -> None:
    bench, (second, third, *_) = begun()
    bench.b.log.emit(bench.now_ns, "test")
    assert bench.b.events_waiting()
    assert not bench.b.receive(second.port, [second.frame], bench.now_ns)
    bench.b.next_event()
    assert bench.b.receive(third.port, [third.frame], bench.now_ns)


def test_a_frame_is_not_idle_while_something_could_be_sent() -> None:
    bench, (second, third, *_) = begun()
    bench.qp_b.post_write(1, bench.target, 0, PACKET, bench.region.va, bench.region.rkey)
    assert not bench.b.receive(second.port, [second.frame], bench.now_ns)
    assert len(bench.b.packets_to_send(bench.now_ns, 64)) == 1
    assert bench.b.receive(third.port, [third.frame], bench.now_ns)
