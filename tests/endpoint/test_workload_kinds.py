"""Every workload over a network in memory that delays and reorders whole messages, in virtual time."""

import json
from typing import Any, cast

import pytest
from hypothesis import given, settings, strategies as st

from common.client import ControlError
from endpoint.group import WorkloadGroup
from endpoint.transport import Transport
from endpoint.workloads import Setup, make
from endpoint.workloads.stream import StreamWorkload
from tests.helpers.workload_fake import FakeClient, FakeNet, FakeTransport


def group(net: FakeNet, kind: str, ranks: int | list[str], **options: Any) -> WorkloadGroup:
    clients = {host: FakeClient(net, host) for host in net.hosts}
    names = [f"h{index}" for index in range(ranks)] if isinstance(ranks, int) else ranks
    return WorkloadGroup(clients, name="w", kind=kind, ranks=names, options=options)


def finished(net: FakeNet, run: WorkloadGroup) -> dict[str, dict[str, Any]]:
    run.start(at_ns=net.now_ns + 1_000_000)
    results = run.wait(timeout_s=1)
    assert {status["state"] for status in results.values()} == {"finished"}, results
    return {host: status["result"] for host, status in results.items()}


STREAMS = [
    ("write_bw", 2, {}, {"h1": 1}),
    ("write_bw", 2, {"bidirectional": True, "qps": 3}, {"h0": 1, "h1": 1}),
    ("permutation", 5, {"shift": 2}, {f"h{index}": 1 for index in range(5)}),
    ("incast", 5, {}, {"h0": 4}),
]


@pytest.mark.parametrize(("kind", "ranks", "options", "flows"), STREAMS)
def test_a_stream_delivers_and_verifies_every_message_of_every_flow(kind, ranks, options, flows):
    net = FakeNet(seed=3, hosts=ranks)
    results = finished(net, group(net, kind, ranks, size=1000, messages=100, depth=4, **options))
    for host, result in results.items():
        assert result["bytes_verified"] == flows.get(host, 0) * 100 * 1000
        assert result["bytes_wrong"] == result["messages_failed"] == 0
        assert result["messages_completed"] == result["messages_posted"]
    assert sum(result["bytes"] for result in results.values()) == sum(flows.values()) * 100_000
    row = dict(zip(results["h1"]["table"]["columns"], results["h1"]["table"]["rows"][0], strict=True))
    assert row["#bytes"] == 1000
    assert row["#iterations"] == 100


def test_a_mix_of_sizes_verifies_plain_writes_behind_immediates():
    net = FakeNet(seed=5, hosts=3)
    sizes = [[1, 3], [500, 2], [9000, 1]]
    results = finished(net, group(net, "mix", 3, sizes=sizes, messages=200, depth=16, immediate_every=5, qps=2))
    total = sum(result["bytes"] for result in results.values())
    assert sum(result["bytes_verified"] for result in results.values()) == total > 0
    assert {result["bytes_wrong"] for result in results.values()} == {0}
    assert {result["messages_completed"] for result in results.values()} == {400}


@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "all_to_all"])
@pytest.mark.parametrize(("ranks", "size", "segment", "qps"), [(2, 4096, 1024, 1), (5, 10_000, 512, 3), (3, 12, 4, 1)])
def test_a_collective_gives_every_rank_the_right_numbers_in_every_round(kind, ranks, size, segment, qps):
    net = FakeNet(seed=7, hosts=ranks)
    results = finished(net, group(net, kind, ranks, size=size, segment=segment, qps=qps, rounds=6))
    for result in results.values():
        assert result["rounds"] == 6
        assert result["bytes_verified"] >= 6 * (size - 4 * ranks)
        assert result["bytes_wrong"] == 0
    steps = [line for line in net.lines if line["kind"] == "step"]
    assert len(steps) == 6 * ranks
    assert all(line["verified"] for line in steps)
    columns = results["h0"]["table"]["columns"]
    assert columns[0] == "size(B)"
    assert columns[-1] == "#wrong"


@settings(max_examples=60)
@given(
    kind=st.sampled_from(["all_reduce", "all_gather", "all_to_all"]),
    ranks=st.integers(2, 6),
    rounds=st.integers(1, 5),
    qps=st.integers(1, 3),
    segment=st.sampled_from([4, 64, 1 << 16]),
    host=st.sampled_from(
        [
            {},
            {"slices": 2},
            {"slices": 3, "call_ns": 7000, "slice_ns": 900, "copy_gbps": 0.5},
            {"slices": 2, "post_ns": 5_000_000, "completion_ns": 9_000_000},
            {"split": True},
            {"slices": 2, "split": True, "slice_ns": 900},
        ]
    ),
    seed=st.integers(0, 1 << 16),
)
def test_no_segment_is_overwritten_before_it_was_used_however_messages_are_delayed(
    kind, ranks, rounds, qps, segment, host, seed
):
    net = FakeNet(seed=seed, hosts=ranks)
    options = {"size": 64 * ranks, "segment": segment, "qps": qps, "rounds": rounds, **host}
    for result in finished(net, group(net, kind, ranks, **options)).values():
        assert result["rounds"] == rounds
        assert result["bytes_verified"] == rounds * 64 * ranks
        assert result["bytes_wrong"] == 0


@pytest.mark.parametrize(
    ("kind", "rounds", "chunks"),
    [("all_reduce", 0, 8), ("all_gather", 0, 8), ("all_to_all", 0, 14), ("all_to_all", 1, 7), ("training", None, 8)],
)
def test_peers_write_to_no_more_memory_than_a_collective_needs(kind, rounds, chunks):
    """As many bytes as the whole result in a ring; in an all-to-all the others' chunks, twice if a round follows."""
    net = FakeNet(seed=7, hosts=8)
    more = {} if rounds is None else {"rounds": rounds}
    group(net, kind, 8, size=8000, **more)
    for transport in net.transports.values():
        written = sum(region.length for region, remote_write in transport.regions.values() if remote_write)
        assert written == chunks * 1000


def test_what_a_host_costs_makes_each_slice_of_a_ring_and_each_call_that_much_longer():
    """Two ranks have two steps of two slices, one after the other. The network's delays are small beside the costs."""
    cost_ns = 100_000_000

    def comm_ns(**host):
        net = FakeNet(seed=7, hosts=2)
        finished(net, group(net, "all_reduce", 2, size=4000, rounds=1, slices=2, **host))
        return max(line["comm_ns"] for line in net.lines if line["kind"] == "step")

    bare_ns = comm_ns()
    assert bare_ns < cost_ns // 20
    assert comm_ns(call_ns=cost_ns) == bare_ns + cost_ns
    for host in ({"slice_ns": cost_ns}, {"copy_gbps": 8000 / cost_ns}):  # a slice has 1,000 bytes
        assert 4 * cost_ns <= comm_ns(**host) <= 4 * cost_ns + bare_ns


@pytest.mark.parametrize(
    ("size", "qps", "parts"),
    [(4 * 8192, 4, [2048, 2048, 2048, 2048]), (4 * 1200, 4, [384, 384, 384, 48]), (4 * 200, 3, [128, 72])],
)
def test_a_split_segment_goes_over_all_queue_pairs_in_parts_of_whole_128_bytes(size, qps, parts):
    """A rank of four has a segment for each of three peers."""
    net = FakeNet(seed=7, hosts=4)
    running = group(net, "all_to_all", 4, size=size, rounds=1, qps=qps, split=True)
    pairs = [list(transport.qps.values()) for transport in net.transports.values()]
    finished(net, running)
    for rank in pairs:
        assert sorted(qp.bytes_sent for qp in rank if qp.sent) == sorted(parts * 3)


def test_a_split_segment_is_taken_once_all_its_parts_are_there():
    """Parts are delayed at random: the numbers are right in every round only if none is taken early."""
    net = FakeNet(seed=7, hosts=3)
    for result in finished(net, group(net, "all_reduce", 3, size=6000, rounds=9, qps=5, slices=2, split=True)).values():
        assert result["bytes_verified"] == 9 * 6000
        assert result["bytes_wrong"] == 0


@pytest.mark.parametrize(("post_ns", "completion_ns"), [(100_000_000, 0), (0, 100_000_000), (30_000_000, 70_000_000)])
def test_a_host_delays_each_message_once_on_its_way_to_the_nic_and_each_completion_once(post_ns, completion_ns):
    """One write at a time: its sender has the completion that much later, in whatever parts the host takes it."""
    messages = 5

    def duration_ns(**host):
        net = FakeNet(seed=7, hosts=2)
        results = finished(net, group(net, "write_bw", 2, size=2, depth=1, messages=messages, **host))
        assert results["h1"]["bytes_verified"] == 2 * messages
        assert results["h1"]["bytes_wrong"] == 0
        return results["h0"]["duration_ns"]

    longer_ns = duration_ns(post_ns=post_ns, completion_ns=completion_ns) - duration_ns()
    assert longer_ns == messages * (post_ns + completion_ns)


def test_a_stream_with_a_slow_host_verifies_every_slot_before_it_is_written_again():
    net = FakeNet(seed=7, hosts=2)
    host = {"post_ns": 20_000_000, "completion_ns": 50_000_000}
    results = finished(net, group(net, "write_bw", 2, size=64, depth=4, messages=400, bidirectional=True, **host))
    for result in results.values():
        assert result["bytes_verified"] == 64 * 400
        assert result["bytes_wrong"] == 0


@pytest.mark.parametrize(
    ("kind", "options", "each"),
    [
        ("write_bw", {"size": 1024, "messages": 64}, 4 * 1024),
        ("permutation", {"size": 1024, "messages": 64}, 4 * 1024),
        ("incast", {"size": 1024, "messages": 64}, 4 * 1024),
        # a ring of five has eight steps (all-gather: four), an all-to-all one per round
        ("all_reduce", {"size": 5 * 4096, "rounds": 1, "slices": 2}, 2048),
        ("all_reduce", {"size": 5 * 4096, "rounds": 2}, 4096),
        ("all_reduce", {"size": 5 * 4096, "rounds": 1, "split": True}, 8 * 256),
        ("training", {"size": 5 * 4096, "steps": 2, "compute_ns": 1_000}, 4096),
        ("all_gather", {"size": 5 * 4096, "rounds": 4}, 4096),
        ("all_to_all", {"size": 5 * 4096, "rounds": 8, "segment": 2048}, 2048),
    ],
)
def test_all_sixteen_queue_pairs_of_a_link_carry_as_many_bytes(kind, options, each):
    hosts = 2 if kind == "write_bw" else 5
    net = FakeNet(seed=7, hosts=hosts)
    running = group(net, kind, hosts, qps=16, **options)
    pairs = [qp for transport in net.transports.values() for qp in transport.qps.values()]
    finished(net, running)
    sent = [qp.bytes_sent for qp in pairs if qp.bytes_sent]
    assert set(sent) == {each}
    assert len(sent) % 16 == 0


def test_a_training_loop_writes_a_step_a_rank_and_counts_from_zero():
    net = FakeNet(seed=9, hosts=4)
    options = {"size": 4000, "steps": 5, "compute_ns": 20_000_000, "compute_jitter": 0.5}
    finished(net, group(net, "training", 4, **options))
    for host in net.hosts:
        steps = [line for line in net.lines if line["kind"] == "step" and line["node"] == host]
        assert [line["step"] for line in steps] == [0, 1, 2, 3, 4]
        for line in steps:
            assert 20_000_000 <= line["compute_ns"] <= 30_000_000
            assert line["comm_ns"] > 0
            assert line["total_ns"] >= line["compute_ns"] + line["comm_ns"]
            assert line["rank"] == int(host[1:])


def test_latency_is_half_a_round_trip():
    net = FakeNet(seed=11, hosts=2, spread_ns=2)  # every message takes 1 ns
    results = finished(net, group(net, "write_lat", 2, size=64, messages=50))
    row = dict(zip(results["h0"]["table"]["columns"], results["h0"]["table"]["rows"][0], strict=True))
    assert row["#iterations"] == 50
    assert row["t_min[usec]"] == row["t_max[usec]"] == 0.0
    slow = FakeNet(seed=11, hosts=2, spread_ns=2_000_000)
    results = finished(slow, group(slow, "write_lat", 2, size=64, messages=200))
    row = dict(zip(results["h0"]["table"]["columns"], results["h0"]["table"]["rows"][0], strict=True))
    assert 800 < row["t_avg[usec]"] < 1200
    assert row["t_min[usec]"] < row["t_typical[usec]"] < row["99% percentile[usec]"] <= row["t_max[usec]"] < 2000


@pytest.mark.parametrize("kind", ["write_bw", "write_lat", "all_reduce", "all_gather", "all_to_all", "training"])
def test_an_endless_workload_ends_when_it_is_stopped_with_nothing_left_out(kind):
    net = FakeNet(seed=13, hosts=2)
    endless = {"write_bw": "messages", "write_lat": "messages", "training": "steps"}.get(kind, "rounds")
    run = group(net, kind, 2, size=1024, **{endless: 0})
    start_ns = run.start(at_ns=net.now_ns)
    net.run(lambda: net.now_ns > start_ns + 500_000_000)
    assert {status["state"] for status in run.status().values()} == {"running"}
    run.stop()
    results = run.wait(timeout_s=1)
    for status in results.values():
        assert status["state"] == "finished"
        assert status["result"]["rounds"] > 3 or kind == "write_bw"
        assert status["result"]["messages_completed"] == status["result"]["messages_posted"]
        assert status["result"]["bytes_wrong"] == 0
    run.remove()
    assert all(not transport.qps and not transport.regions for transport in net.transports.values())


def test_a_duration_ends_streams_and_collectives_alike():
    for kind, more in (("permutation", {}), ("all_reduce", {"rounds": 0})):
        net = FakeNet(seed=15, hosts=3)
        results = finished(net, group(net, kind, 3, size=3000, duration_ns=300_000_000, **more))
        assert all(0.29e9 < result["duration_ns"] < 0.4e9 for result in results.values())


def test_a_rate_limits_what_is_posted():
    net = FakeNet(seed=17, hosts=2)
    results = finished(net, group(net, "write_bw", 2, size=1000, duration_ns=1_000_000_000, rate_bps=800_000))
    assert 99 <= results["h0"]["messages_posted"] <= 103


@pytest.mark.parametrize("kind", ["write_bw", "write_lat", "mix", "all_reduce", "all_gather", "all_to_all"])
def test_a_changed_byte_is_counted_as_wrong(kind):
    net = FakeNet(seed=19, hosts=2)
    seen = [0]

    def tamper(data: bytes) -> bytes:
        seen[0] += 1
        return bytes([data[0] ^ 1]) + data[1:] if seen[0] == 5 else data

    net.tamper = tamper
    amount = {"rounds": 10} if kind.startswith("all") else {"messages": 40}
    results = finished(net, group(net, kind, 2, **amount, **({} if kind == "mix" else {"size": 1024})))
    assert sum(result["bytes_wrong"] for result in results.values()) > 0


def test_a_message_that_never_reaches_memory_does_not_pass_for_the_one_before():
    net = FakeNet(seed=21, hosts=2)
    real = net.carry
    skipped = [0]

    def carry(qp, number, wr_id, data, va, rkey, immediate):
        if number == 30:
            skipped[0] += 1
            target = net.transports[qp.peer.host].regions[rkey][0]
            assert target.buffer is not None
            data = bytes(target.buffer[va - target.va : va - target.va + len(data)])  # what is there already
        real(qp, number, wr_id, data, va, rkey, immediate)

    monkey: Any = net
    monkey.carry = carry
    results = finished(net, group(net, "write_bw", 2, size=1024, messages=60, depth=8))
    assert skipped == [1]
    assert results["h1"]["bytes_wrong"] == 1024
    assert results["h1"]["bytes_verified"] == 59 * 1024


def test_a_dead_queue_pair_fails_its_flow_and_the_others_finish():
    net = FakeNet(seed=23, hosts=2)
    run = group(net, "write_bw", 2, size=1000, messages=100, qps=2, depth=2)
    run.start(at_ns=net.now_ns)
    net.run(lambda: net.hosts["h0"].counters()["qps"] != [] and net.now_ns > 1_010_000_000)
    first = sorted(net.transports["h0"].qps)[0]
    net.kill("h0", first)
    net.kill("h1", sorted(net.transports["h1"].qps)[0])
    results = run.wait(timeout_s=1)
    assert results["h0"]["state"] == results["h1"]["state"] == "failed"
    assert results["h0"]["cause"] == "QP 0 to h1: flushed"  # once, however many requests were flushed
    assert 50_000 <= results["h1"]["result"]["bytes_verified"] < 100_000
    stop = [line for line in net.lines if line["kind"] == "workload" and line["state"] == "stop"]
    assert {line["outcome"] for line in stop} == {"failed"}


def test_transfer_lines_tell_the_goodput_of_each_interval():
    net = FakeNet(seed=25, hosts=3)
    results = finished(net, group(net, "incast", 3, size=5000, messages=2000, depth=4))
    lines = [line for line in net.lines if line["kind"] == "transfer"]
    assert {(line["node"], line["peer"]) for line in lines} == {("h0", "h1"), ("h0", "h2")}
    assert sum(line["bytes"] for line in lines) == results["h0"]["bytes_verified"] == 2 * 2000 * 5000
    assert all(line["end_ns"] - line["start_ns"] <= 101_000_000 for line in lines)


@pytest.mark.parametrize(
    ("kind", "ranks", "options", "complaint"),
    [
        ("write_bww", 2, {}, "there is no workload 'write_bww'; valid: write_bw, write_lat"),
        ("write_bw", 3, {}, "write_bw takes 2 ranks, not 3"),
        ("write_bw", 2, {"depht": 3}, "write_bw.depht is no key here; valid: qps, seed, post_ns, completion_ns, size"),
        ("write_bw", 2, {"depth": 0}, "depth is 0; it must be from 1 to 128"),
        ("write_bw", 2, {"depth": "4"}, "depth is '4'; it must be an integer, such as 16"),
        ("permutation", 3, {"shift": 3}, "each would send to itself"),
        ("mix", 2, {"sizes": [[1, 2, 3]]}, "a pair of integers"),
        ("all_reduce", 3, {"segment": 6}, "multiple of 4"),
        ("all_reduce", 3, {"size": 4}, "size is 4; it must be from 12"),
        ("write_bw", ["h0", "h9"], {}, "no agent for h9"),
        ("write_bw", ["h0", "h0"], {}, "each host once"),
    ],
)
def test_what_cannot_be_is_refused_with_the_choices(kind, ranks, options, complaint):
    net = FakeNet(seed=1, hosts=3)
    with pytest.raises(ControlError, match=complaint):
        group(net, kind, ranks, **options)
    assert all(not transport.qps for transport in net.transports.values())


def test_operations_out_of_order_and_unknown_ones_are_refused():
    net = FakeNet(seed=1, hosts=2)
    client = FakeClient(net, "h0")

    def refused(op: str, **arguments: Any) -> str:
        with pytest.raises(ControlError) as caught:
            client.result(client.send(op, **arguments))
        return str(caught.value)

    assert "there is no operation 'fly'; valid: counters, denylist.get" in refused("fly")
    assert "there is no workload 'w'; present: none" in refused("workload.start", name="w")
    assert "workload.start.name is missing; present: id, op; it must be a non-empty string" in refused("workload.start")
    prepare = {"name": "w", "kind": "write_bw", "ranks": ["h0", "h1"], "options": {}}
    client.result(client.send("workload.prepare", **prepare))
    assert "exists; remove it first" in refused("workload.prepare", **prepare)
    assert "cannot start workload 'w': it is prepared, not connected" in refused("workload.start", name="w")
    assert "also needs the offers of h1" in refused("workload.connect", name="w", offers={})
    assert "is not one that workload.prepare made" in refused("workload.connect", name="w", offers={"h1": {}})
    assert "an EV of a path to it" in refused("denylist.set", denied=[{"host": "h1", "ev": 999}])
    assert "at least a millisecond" in refused("sample", interval_ns=5)


def test_offers_made_with_other_options_do_not_connect():
    net = FakeNet(seed=1, hosts=2)
    clients = {host: FakeClient(net, host) for host in net.hosts}
    offers = {}
    for host, depth in (("h0", 8), ("h1", 4)):
        request = {"name": "w", "kind": "write_bw", "ranks": ["h0", "h1"], "options": {"depth": depth}}
        offers[host] = clients[host].result(clients[host].send("workload.prepare", **request))["offers"]
    with pytest.raises(ControlError, match="both must be prepared with the same options"):
        clients["h0"].result(clients["h0"].send("workload.connect", name="w", offers={"h1": offers["h1"]["h0"]}))


SOURCES = [
    ("permutation", {"shift": 3}), ("incast", {}), ("mix", {}), ("write_bw", {}), ("write_bw", {"bidirectional": True}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options"), SOURCES)
def test_the_sources_of_a_rank_are_the_ranks_whose_targets_it_is(kind: str, options: dict[str, Any]) -> None:
    """A kind may say them at once: receivers must expect the very hosts that send."""
    for ranks in (2,) if kind == "write_bw" else (2, 3, 7):
        names = tuple(f"h{index}" for index in range(ranks))
        if options.get("shift", 1) % ranks == 0:
            continue
        net = FakeNet(seed=1, hosts=ranks)
        for rank in range(ranks):
            transport = cast(Transport, FakeTransport(net, names[rank]))
            workload = make(
                Setup("w", kind, names[rank], names, transport, lambda line, fields: None, lambda: 0), options
            )
            assert isinstance(workload, StreamWorkload)
            senders = [other for other in range(ranks) if names[rank] in workload.targets(other)]
            assert list(workload.sources(rank)) == senders
            assert [peer for peer, size in workload.inboxes().items() if size] == [names[one] for one in senders]


def test_a_complaint_of_many_hosts_is_told_once_with_the_first_of_them():
    net = FakeNet(seed=1, hosts=9)
    with pytest.raises(
        ControlError,
        match=r"^h0, h1, h2, h3 and 5 more: permutation: shift is 9: with 9 ranks each would send to itself",
    ):
        group(net, "permutation", 9, size=64, messages=1, shift=9)


def test_hosts_of_one_process_keep_the_name_of_a_rank_once():
    """8,192 hosts with names of their own for each other took 3.6 GB."""
    net = FakeNet(seed=1, hosts=3)
    for host in net.hosts:
        request = {"name": "w", "kind": "permutation", "ranks": ["h0", "h1", "h2"], "options": {}}
        client = FakeClient(net, host)
        client.result(client.send("workload.prepare", **json.loads(json.dumps(request))))
    kept = [net.hosts[host]._in_turn[0].setup.ranks for host in net.hosts]
    assert kept[0] == ("h0", "h1", "h2")
    assert all(one is other for ranks in kept[1:] for one, other in zip(kept[0], ranks, strict=True))
