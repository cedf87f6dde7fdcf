"""A valid frame of every kind, and what a hostile sender makes of it."""

from random import Random

from endpoint.nic import icrc
from tests.helpers.transport.bench import Bench
from tests.helpers.transport.virtual_wire import trim


def corpus(bench: Bench) -> list[bytes]:
    """A valid frame of every kind, in both directions."""
    bench.qp_b.post_recv(0)
    bench.post(3)
    bench.qp_a.post_write(50, bench.region, 0, 1, bench.target.va, bench.target.rkey)
    bench.qp_a.post_write(51, bench.region, 0, 5000, bench.target.va, bench.target.rkey, 7)
    sent = bench.writes()
    bench.to_b(sent[0].marked(), sent[1].trimmed(), *sent[2:])
    answers = bench.answers()
    bench.wait(20)
    bench.timers()
    probes = bench.out(bench.a)
    bench.a.port_changed(2, False, bench.now_ns)
    bench.a.port_changed(2, True, bench.now_ns)
    requests = bench.out(bench.a)
    bench.to_b(*probes, *requests)
    answers += bench.answers()
    frames = [packet.frame for packet in [*sent, *probes, *requests, *answers]]
    return [*frames, *(trim(packet.frame, lasthop) for packet in sent for lasthop in (False, True))]


def mutate(frame: bytes, rng: Random) -> bytes:
    kind = rng.randrange(6)
    if kind == 0:
        return rng.randbytes(rng.choice((0, 13, 14, 60, 122, 128, 134, 138, 200, 1500)))
    if kind == 1:
        return frame[: rng.randrange(len(frame) + 1)]
    data = bytearray(frame)
    if kind == 2:
        data += rng.randbytes(rng.randrange(1, 40))
    for _ in range(rng.randrange(1, 6)):
        limit = min(len(data), 190) if rng.random() < 0.9 else len(data)
        at = rng.randrange(102 if limit > 102 and rng.random() < 0.7 else 0, limit)  # mostly behind UDP
        data[at] = rng.randrange(256) if rng.random() < 0.5 else data[at] ^ 1 << rng.randrange(8)
    if kind == 3 and len(data) > 120:
        # The sender is hostile, not the wire: the ICRC is right.
        data[-4:] = icrc.WIRE.pack(icrc.compute(bytes(data[54:-4])))
    return bytes(data)
