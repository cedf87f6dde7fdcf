"""Two ends with other PMTUs agree on the smaller, or refuse with both numbers; in both transports."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from benchmarks.rig.profiles import profile as profile_data
from endpoint import profile as profiles
from endpoint.mrc.endpoint import Endpoint
from endpoint.nic import wire
from endpoint.nic.attributes import VerbError
from endpoint.roce.endpoint import Endpoint as RoceEndpoint
from endpoint.transport import CompletionStatus, QPState
from tests.helpers.transport.bench import Bench

SUCCESS = CompletionStatus.SUCCESS


@pytest.mark.parametrize(("mine", "theirs"), [(4096, 1024), (1024, 4096), (4096, 4096), (256, 4096)])
def test_writes_go_through_between_ends_of_different_pmtus(mine: int, theirs: int) -> None:
    bench = Bench()
    bench.qp_a, bench.qp_b = qp_a, qp_b = bench.pair({"pmtu": mine}, {"pmtu": theirs})
    agreed = min(mine, theirs)
    assert (qp_a.pmtu, qp_b.pmtu) == (agreed, agreed)
    qp_b.post_recv(1)
    bench.qp_a.post_write(0, bench.region, 0, 10_001, bench.target.va, bench.target.rkey, 7)
    for _ in range(100):
        bench.to_b(*bench.out(bench.a))
        bench.to_a(*bench.answers())
    assert [done.status for done in bench.completions()] == [SUCCESS]
    assert bench.sink[:10_001] == bench.source[:10_001]
    assert qp_a.requester.data_packets == -(-10_001 // agreed)


def test_both_directions_use_what_was_agreed() -> None:
    bench = Bench()
    _, qp_b = bench.pair({}, {"pmtu": 512})
    back = bench.b.register_memory(bytearray(4096))
    into = bench.a.register_memory(bytearray(4096))
    qp_b.post_write(0, back, 0, 4096, into.va, into.rkey)
    sent = [packet for packet in bench.out(bench.b) if packet.opcode in wire.WRITES]
    assert len(sent) == 8


def test_a_peer_that_does_not_say_is_taken_to_have_ours() -> None:
    bench = Bench()
    qp = bench.a.create_qp(bench.cq_a)
    qp.connect(replace(bench.qp_b.info(), pmtu=None), bench.now_ns)
    assert qp.pmtu == 4096


@pytest.mark.parametrize("theirs", [0, 255, 65_536, -1, 4096.0, "4096"])
@pytest.mark.parametrize("make", [Endpoint, RoceEndpoint])
def test_a_pmtu_that_cannot_be_is_refused_with_both_numbers_and_changes_nothing(make: Any, theirs: Any) -> None:
    nic = make(profiles.parse(profile_data(0)), rng=Random(1), now_ns=0)
    qp = nic.create_qp(nic.create_cq(4))
    qp.modify(QPState.INIT, 0)
    info = replace(qp.info(), host="h1", pmtu=theirs)
    with pytest.raises(VerbError, match=rf"the peer's PMTU is {theirs!r} and ours 4096; .* 256 to 65535 bytes"):
        qp.modify(QPState.RTR, 0, peer=info)
    assert qp.state is QPState.INIT
    qp.modify(QPState.RTR, 0, peer=replace(info, pmtu=1024))
    assert qp.pmtu == 1024


@pytest.mark.parametrize("make", [Endpoint, RoceEndpoint])
def test_a_qp_cannot_have_more_than_its_ports_carry(make: Any) -> None:
    nic = make(profiles.parse(profile_data(0)), rng=Random(1), now_ns=0)
    with pytest.raises(VerbError, match="pmtu is 8192; the profile's, which fits the ports, is 4096"):
        nic.create_qp(nic.create_cq(1), pmtu=8192)
    with pytest.raises(VerbError, match="pmtu is 100; it must be from 256 to 65535"):
        nic.create_qp(nic.create_cq(1), pmtu=100)
