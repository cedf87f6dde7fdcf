"""Hostile bytes into a live endpoint: never an exception, never a stray write, and the connection still works after."""

from random import Random

import pytest

from endpoint.mrc.peer import PORTS_ALL
from endpoint.transport import QPState
from tests.helpers.transport import Bench
from tests.helpers.transport.hostile import corpus, mutate


def fuzz(count: int, seed: int, dialect: str = "") -> None:
    rng = Random(seed)
    bench = Bench(max_recv_wr=1 << 16, dialect=dialect)
    frames = corpus(bench)
    untouched = bytearray(rng.randbytes(4096))
    outside = bytes(untouched)
    bench.b.register_memory(untouched, remote_write=False)
    source = bytes(bench.source)
    for number in range(count):
        frame = mutate(rng.choice(frames), rng)
        endpoint = bench.a if rng.random() < 0.4 else bench.b
        endpoint.receive(rng.randrange(1, 5), [memoryview(frame) if rng.random() < 0.5 else frame], bench.now_ns)
        if number % 64 == 0:
            bench.now_ns += rng.randrange(20_000)
            for one in (bench.a, bench.b):
                due_ns = one.next_timer_ns()
                if due_ns is not None and due_ns <= bench.now_ns:
                    one.handle_timer(bench.now_ns)
                assert len(one.packets_to_send(bench.now_ns, 64)) <= 64
                assert len(one.log) <= 65536
            if QPState.ERROR in (bench.qp_a.state, bench.qp_b.state):
                # With a right ICRC a packet may say what ends a connection. Go on with a new one.
                # The last connection may have been told, with a right ICRC, that the peer has no port left.
                for one in (bench.a, bench.b):
                    for peer in one.peers:
                        peer.ports = PORTS_ALL
                bench = renewed(bench)
                frames = corpus(bench)
                bench.b.register_memory(untouched, remote_write=False)
                source = bytes(bench.source)
    assert bytes(untouched) == outside
    assert bytes(bench.source) == source
    for endpoint in (bench.a, bench.b):
        assert len(endpoint.counters()["drops"]) < 20
    works(renewed(bench))


def renewed(bench: Bench) -> Bench:
    """Two new QPs on the same endpoints."""
    bench.a.destroy_qp(bench.qp_a, bench.now_ns)
    bench.b.destroy_qp(bench.qp_b, bench.now_ns)
    bench.cq_a, bench.cq_b = bench.a.create_cq(10_000), bench.b.create_cq(10_000)
    bench.qp_a, bench.qp_b = bench.pair()
    return bench


def works(bench: Bench) -> None:
    """The endpoints still carry a write."""
    for endpoint, peer in ((bench.a, "h1"), (bench.b, "h0")):
        endpoint.peers.named(peer).ports = (1 << 32) - 1  # a forged port status update with a right ICRC is believed
        for qp in (bench.qp_a, bench.qp_b):
            qp.refresh_ports()
        assert endpoint.ports.up == 0b1111
    bench.sink[:] = bytes(len(bench.sink))
    bench.post(4)
    for _ in range(40):
        bench.to_b(*bench.out(bench.a))
        bench.to_a(*bench.answers())
        bench.later()
    assert [done.status.value for done in bench.completions()] == ["success"]
    assert bench.sink[: 4 * 4096] == bench.source[: 4 * 4096]


def test_fifty_thousand_hostile_packets_do_no_harm() -> None:
    fuzz(50_000, seed=1)


def test_hostile_packets_do_no_harm_in_another_dialect() -> None:
    fuzz(15_000, seed=2, dialect="mrc-client")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_million_hostile_packets_do_no_harm(seed: int) -> None:
    fuzz(100_000, seed=100 + seed)


def test_every_truncation_of_every_kind_of_frame_is_survived() -> None:
    bench = Bench()
    for frame in corpus(bench):
        for size in range(min(len(frame), 200)):
            bench.a.receive(1, [frame[:size]], bench.now_ns)
            bench.b.receive(1, [frame[:size]], bench.now_ns)


def test_a_frame_to_someone_else_is_not_ours() -> None:
    bench = Bench()
    (sent,) = bench.write(1)
    for at in (38, 54 + 24, 54 + 8):  # outer destination, inner destination, inner source
        bench.to_b(sent.with_bytes({at + 3: bytes([sent.frame[at + 3] ^ 0xFF])}))
    assert bench.b.counters()["drops"] == {"not_for_us": 2, "wrong_peer": 1}
    assert bench.sink[:4096] == bytes(4096)
