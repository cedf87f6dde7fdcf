"""The baseline: go-back-N on one path, DCQCN, retries that run out, and a fair opponent to MRC."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from benchmarks.rig.profiles import profile as profile_data
from endpoint import profile as profiles
from endpoint.nic import wire as shared
from endpoint.nic.attributes import VerbError
from endpoint.nic.config import ConfigError
from endpoint.roce import wire
from endpoint.roce.dcqcn import RATE_MIN, Dcqcn
from endpoint.roce.endpoint import RoceEndpoint
from endpoint.transport import CompletionStatus, QPState
from tests.helpers.transport import Faults, Flow, Link, Wire, roce_wire, run
from tests.helpers.transport.hostile import mutate

GBPS = 1_000_000_000


def test_it_runs_over_an_srv6_profile_on_one_of_its_paths() -> None:
    wire_ = roce_wire(planes=4, rate_bps=10 * GBPS, profile_changes={})
    flow = Flow(wire_)
    flow.post(50_000, times=10)
    flow.finish()
    used = [key for key, link in wire_.links.items() if link.data_packets and isinstance(key[0], int)]
    assert len(used) == 1


def losing(wire_: Wire) -> tuple[Flow, Link]:
    """A write in the midst of which its link has lost packets."""
    flow = Flow(wire_)
    flow.post(400_000)
    wire_.run(wire_.base_rtt_ns)
    link = next(link for key, link in wire_.links.items() if link.data_packets and isinstance(key[0], int))
    link.faults = Faults(loss=1.0)
    wire_.run(wire_.now_ns + 2_000)
    link.faults = Faults()
    return flow, link


def test_a_lost_packet_sends_everything_behind_it_again() -> None:
    wire_ = roce_wire()
    flow, link = losing(wire_)
    flow.finish()
    requester = flow.qp.requester
    assert requester.naks >= 1
    assert requester.retransmits >= 3 * link.dropped
    assert requester.timeouts == 0


def test_selective_repeat_sends_each_lost_packet_again_once_and_nothing_else() -> None:
    """IRN, section 3.1: a packet is lost when one behind it has arrived."""
    wire_ = roce_wire(selective_repeat=True)
    flow, link = losing(wire_)
    flow.finish()
    requester = flow.qp.requester
    assert requester.retransmits == link.dropped > 0
    assert requester.timeouts == flow.remote.responder.duplicates == 0
    assert flow.remote.responder.received_bytes == 400_000


def test_selective_repeat_under_random_loss_sends_again_what_was_lost() -> None:
    """Of n packets and their copies a share p is lost: n · p / (1 - p) copies, within four standard deviations."""
    wire_ = roce_wire(selective_repeat=True, dcqcn=False)
    flow = Flow(wire_, size=1 << 20)
    flow.post(4096)
    run(wire_, flow)
    link = next(link for key, link in wire_.links.items() if link.data_packets and isinstance(key[0], int))
    link.faults = Faults(loss=0.02)
    for _ in range(20):
        flow.post(1 << 20)
        run(wire_, flow)
    flow.check()
    copies = 20 * 256 * 0.02 / 0.98
    assert abs(flow.qp.requester.retransmits - copies) < 4 * copies**0.5


def test_selective_repeat_after_a_timeout_sends_only_what_no_nak_has_named() -> None:
    wire_ = roce_wire(selective_repeat=True)
    for link in wire_.links.values():
        link.up = False
    flow = Flow(wire_)
    flow.post(16 * 4096)
    wire_.run(wire_.now_ns + 20_000)
    requester = flow.qp.requester
    first = requester.una
    assert requester.top == first + 16
    requester.receive_ack(wire_.now_ns, wire.SYNDROME_NAK_SEQUENCE, first, first + 3)
    assert list(requester._lost) == [first, first + 1, first + 2]
    requester.receive_ack(wire_.now_ns, wire.SYNDROME_NAK_SEQUENCE, first, first + 5)
    assert list(requester._lost) == [first, first + 1, first + 2, first + 4]
    requester.receive_ack(wire_.now_ns, wire.SYNDROME_ACK, first + 1)
    assert requester._next_psn() == first + 2
    requester.handle_timer(10**12)
    assert list(requester._lost) == [psn for psn in range(first + 2, first + 16) if psn not in (first + 3, first + 5)]


@pytest.mark.parametrize(
    ("settings", "slow"),
    [
        ({}, False),
        ({"repair_ns": 500_000}, True),
        ({"repair_ns": 500_000, "nak_repair_ns": 0}, False),
        ({"nak_repair_ns": 500_000}, True),
    ],
)
def test_a_nic_takes_its_time_to_go_back_after_a_nak(settings: dict[str, int], slow: bool) -> None:
    wire_ = roce_wire(**settings)
    flow, _ = losing(wire_)
    began_ns = wire_.now_ns
    flow.finish()
    assert flow.qp.requester.naks >= 1
    assert (wire_.now_ns - began_ns > 500_000) == slow
    assert wire_.now_ns - began_ns < 500_000 + 20 * wire_.base_rtt_ns


@pytest.mark.parametrize("later", [False, True])
def test_a_write_after_a_nak_that_an_acknowledgement_has_overtaken_is_sent(later: bool) -> None:
    """The peer refuses a packet, its copy arrives by a timeout's, and all is acknowledged while the NIC goes back."""
    repair_ns = 500_000
    wire_ = roce_wire(repair_ns=repair_ns)
    flow = Flow(wire_)
    flow.post(16_384)
    wire_.run(wire_.now_ns + 2_000)
    requester = flow.qp.requester
    assert requester.una < requester.top
    requester.receive_ack(wire_.now_ns, wire.SYNDROME_NAK_SEQUENCE, requester.una)
    requester.receive_ack(wire_.now_ns, wire.SYNDROME_ACK, requester.top - 1)
    assert requester.una == requester.top
    if later:
        wire_.run(wire_.now_ns + 2 * repair_ns)
    began_ns = wire_.now_ns
    flow.post(4096)
    run(wire_, flow, round_trips=200)
    flow.check()
    assert wire_.now_ns - began_ns < 5 * wire_.base_rtt_ns, "nothing is left to go back to"


def test_a_refusal_of_a_packet_that_was_never_sent_holds_nothing_back() -> None:
    wire_ = roce_wire(repair_ns=500_000)
    flow = Flow(wire_)
    flow.post(16_384)
    run(wire_, flow)
    requester = flow.qp.requester
    requester.receive_ack(wire_.now_ns, wire.SYNDROME_NAK_SEQUENCE, requester.top)
    flow.post(4096)
    run(wire_, flow, round_trips=200)
    flow.check()


def test_a_dead_path_ends_the_qp_when_the_retries_run_out() -> None:
    wire_ = roce_wire()
    flow = Flow(wire_)
    flow.post(100_000, times=20)
    wire_.run(2 * wire_.base_rtt_ns)
    wire_.cut()
    wire_.run(wire_.now_ns + 10_000 * wire_.base_rtt_ns)
    flow.poll()
    assert flow.qp.state is QPState.ERROR
    assert flow.qp.cause == "no acknowledgement after 7 retries"
    statuses = [flow.statuses[n] for n in sorted(flow.statuses)]
    failed = [status for status in statuses if status is not CompletionStatus.SUCCESS]
    assert failed[0] is CompletionStatus.RETRY_EXCEEDED
    assert set(failed[1:]) == {CompletionStatus.FLUSHED}
    assert len(statuses) == 20


def test_a_short_outage_is_survived_by_a_timeout() -> None:
    wire_ = roce_wire()
    flow = Flow(wire_)
    flow.post(100_000, times=20)
    wire_.at(2 * wire_.base_rtt_ns, lambda: wire_.set_port("h0", 1, False))
    wire_.at(6 * wire_.base_rtt_ns, lambda: wire_.set_port("h0", 1, True))
    flow.finish()


def unsent_when_the_port_is_lost() -> tuple[Wire, Flow, Flow]:
    """A port that goes down while one flow has kept it busy, and another has sent nothing yet."""
    wire_ = roce_wire(hosts=3)
    busy, waiting = Flow(wire_, "h0", "h1"), Flow(wire_, "h0", "h2")
    busy.post(500_000)
    wire_.kick("h0")
    waiting.post(1000)
    wire_._timer("h0")
    assert waiting.qp.requester.data_packets == 0
    wire_.set_port("h0", 1, False)
    return wire_, busy, waiting


def test_a_write_that_was_never_sent_ends_with_its_port() -> None:
    wire_, busy, waiting = unsent_when_the_port_is_lost()
    run(wire_, busy, waiting)
    assert busy.finished
    assert waiting.finished
    assert (busy.statuses[0], waiting.statuses[0]) == (CompletionStatus.RETRY_EXCEEDED,) * 2


def test_a_write_that_was_never_sent_goes_out_when_its_port_is_back() -> None:
    wire_, busy, waiting = unsent_when_the_port_is_lost()
    wire_.at(2 * wire_.base_rtt_ns, lambda: wire_.set_port("h0", 1, True))
    run(wire_, busy, waiting)
    waiting.check()
    assert waiting.qp.requester.timeouts == 0


def test_a_wrong_rkey_ends_both_ends_and_writes_nothing() -> None:
    wire_ = roce_wire()
    flow = Flow(wire_)
    flow.qp.post_write(0, flow.region, 0, 100, flow.target.va, flow.target.rkey ^ 1)
    wire_.run(20 * wire_.base_rtt_ns)
    assert [done.status for done in flow.cq.poll(9)] == [CompletionStatus.REMOTE_ACCESS_ERROR]
    assert flow.remote.state is QPState.ERROR
    assert flow.sink == bytes(len(flow.sink))


def test_a_refusal_is_of_its_own_write_and_acknowledges_those_before() -> None:
    wire_ = roce_wire()
    flow = Flow(wire_)
    flow.post(4096)
    flow.qp.post_write(7, flow.region, 0, 4096, flow.target.va, flow.target.rkey ^ 1)
    wire_.kick("h0")
    requester = flow.qp.requester
    second = requester.una + 1 & 0xFFFFFF  # the acknowledgement of the first is lost
    requester.receive_ack(wire_.now_ns, wire.SYNDROME_NAK_ACCESS, second)
    done = [(each.wr_id, each.status) for each in flow.cq.poll(9)]
    assert done == [(0, CompletionStatus.SUCCESS), (7, CompletionStatus.REMOTE_ACCESS_ERROR)]
    assert flow.qp.state is QPState.ERROR


def test_a_qp_that_fails_while_it_sends_wants_no_timer_any_more() -> None:
    wire_ = roce_wire()
    flow = Flow(wire_)
    sender = wire_.transports["h0"]
    other = sender.register_memory(bytearray(100))
    flow.qp.post_write(1, other, 0, 100, flow.target.va, flow.target.rkey)
    sender.deregister_memory(other)
    assert len(sender.packets_to_send(0, 8)) == 0
    assert flow.qp.state is QPState.ERROR
    sender.handle_timer(10**12)
    assert sender.next_timer_ns() is None


@pytest.mark.parametrize(
    ("setting", "rule"),
    [
        ({"retry_count": 8}, "retry_count is 8; it must be from 0 to 7"),
        ({"window_bdps": float("nan")}, "window_bdps is nan; it must be from 0"),
        ({"ack_every_bytes": 0}, "ack_every_bytes is 0; it must be from 1 to"),
        ({"timeout": 30}, "timeout is 30; it must be from 0 to 24"),
        ({"max_recv_wr": 0}, "max_recv_wr is 0; it must be from 1 to"),
        ({"dcqcn": "no"}, "dcqcn is 'no'; it must be true or false"),
    ],
)
def test_a_setting_that_cannot_work_is_refused_when_the_nic_is_made(setting: dict[str, Any], rule: str) -> None:
    with pytest.raises(ConfigError, match=rule):
        RoceEndpoint(profiles.parse(profile_data(0)), rng=Random(1), **setting)


def test_settings_attributes_and_hosts_that_do_not_exist_are_refused_by_name() -> None:
    nic = profiles.parse(profile_data(0))
    with pytest.raises(ConfigError, match="RoCE has no setting 'mpr'; valid: jitter_ns, "):
        RoceEndpoint(nic, rng=Random(1), mpr=8)
    endpoint = RoceEndpoint(nic, rng=Random(1))
    cq = endpoint.create_cq(4)
    with pytest.raises(VerbError, match="no attribute 'mpr'; valid: max_send_wr"):
        endpoint.create_qp(cq, mpr=8)
    qp = endpoint.create_qp(cq)
    pmtu = qp.pmtu
    with pytest.raises(VerbError, match="no paths to 'h0'; destinations: h1"):
        qp.connect(replace(qp.info(), pmtu=256), 0)
    assert qp.pmtu == pmtu


# --- rate control ----------------------------------------------------------------------------------------------


def test_dcqcn_is_the_same_in_its_own_units_at_lab_rates() -> None:
    fast, slow = Dcqcn(100 * GBPS, 12_000, 150_000), Dcqcn(10_000_000, 54_000_000, 67_500)
    rng = Random(3)
    time = 0.0
    for _ in range(500):
        time += rng.random() * 3
        notify, share = rng.random() < 0.2, rng.random() * 0.1
        for dcqcn, rtt_ns, bdp in ((fast, 12_000, 150_000), (slow, 54_000_000, 67_500)):
            if notify:
                dcqcn.on_cnp(int(time * rtt_ns))
            dcqcn.on_sent(int(share * bdp), int(time * rtt_ns))
        assert slow.rate_bps / 10_000_000 == pytest.approx(fast.rate_bps / (100 * GBPS), rel=0.01)


def test_at_the_least_rate_nothing_times_out_for_want_of_an_acknowledgement() -> None:
    wire_ = roce_wire()
    flow = Flow(wire_)
    requester = flow.qp.requester

    def notify() -> None:
        requester.receive_cnp(wire_.now_ns)
        wire_.at(wire_.now_ns + wire_.base_rtt_ns, notify)

    notify()
    wire_.run(100 * wire_.base_rtt_ns)
    assert requester.dcqcn.rate_bps == RATE_MIN * 40 * GBPS
    flow.post(15 * 4096)
    begun_ns = wire_.now_ns
    run(wire_, flow, round_trips=4_000)
    flow.check()
    assert wire_.now_ns - begun_ns > 14 * 4096 * 8 * 1000 // 40
    assert (requester.timeouts, requester.retransmits) == (0, 0)


def test_many_queue_pairs_on_one_port_do_not_time_out_for_want_of_an_acknowledgement() -> None:
    wire_ = roce_wire(mark=False)
    flows = [Flow(wire_, size=100_000, seed=number) for number in range(60)]
    for flow in flows:
        flow.post(100_000)
    run(wire_, *flows)
    for flow in flows:
        flow.check()
    assert sum(link.dropped for link in wire_.links.values()) == 0
    assert sum(flow.qp.requester.timeouts for flow in flows) == 0


def incast(**options: Any) -> tuple[Wire, list[Flow], list[int]]:
    """Four to one, marked on the last hop too, as the baseline's class is; bytes per flow once the start is over."""
    wire_ = roce_wire(hosts=5, rate_bps=25 * GBPS, **options)
    bdp = 25 * GBPS * wire_.base_rtt_ns // 8_000_000_000
    for link in wire_.links.values():
        if link.lasthop:
            link.mark_bytes, link.depth_bytes = bdp // 4, 4 * bdp
    end_ns = 600 * wire_.base_rtt_ns
    flows = [Flow(wire_, f"h{n}", "h4", seed=n) for n in range(4)]
    for flow in flows:
        flow.keep_posted(65_536, 8, end_ns)
    wire_.run(end_ns // 4)
    starts = [flow.remote.responder.received_bytes for flow in flows]
    wire_.run(end_ns)
    return wire_, flows, [f.remote.responder.received_bytes - start for f, start in zip(flows, starts, strict=True)]


def test_marks_on_the_last_hop_slow_the_senders_of_an_incast_and_keep_the_queue_short() -> None:
    controlled, flows, gained = incast()
    wild, _, _ = incast(dcqcn=False)
    assert all(flow.remote.responder.cnps_sent > 0 for flow in flows)
    assert all(flow.qp.requester.cnps > 0 for flow in flows)
    lost, lost_without = (sum(link.dropped for link in each.links.values()) for each in (controlled, wild))
    assert lost < lost_without / 4
    line = 25 * GBPS * 450 * controlled.base_rtt_ns // 8_000_000_000
    assert sum(gained) > 0.75 * line
    assert max(gained) < 1.5 * min(gained)


# --- fairness --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [65_536, 1_000_000])
def test_without_loss_and_collisions_the_baseline_reaches_95_percent_of_mrcs_goodput(size: int) -> None:
    def goodput(wire_: Wire) -> float:
        flow = Flow(wire_)
        end_ns = 400_000
        flow.keep_posted(size, 16, end_ns)
        wire_.run(100_000)
        return flow.goodput_bps(end_ns)

    mrc = goodput(Wire(planes=4, rate_bps=10 * GBPS))
    roce = goodput(roce_wire())
    assert mrc > 0.9 * 40 * GBPS
    assert roce >= 0.95 * mrc


# --- hostile bytes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("selective_repeat", [False, True])
def test_thirty_thousand_hostile_packets_do_no_harm(selective_repeat: bool) -> None:
    rng = Random(5)
    own = {"selective_repeat": selective_repeat}
    a, b = (RoceEndpoint(profiles.parse(profile_data(n)), rng=Random(n), **own) for n in range(2))
    sink, guard = bytearray(1 << 16), bytearray(4096)
    source = a.register_memory(bytearray(1 << 16))
    target = b.register_memory(sink)
    b.register_memory(guard, remote_write=False)

    def connect() -> tuple[Any, Any]:
        one, other = a.create_qp(a.create_cq(5000)), b.create_qp(b.create_cq(5000))
        one.connect(other.info(), 0)
        other.connect(one.info(), 0)
        other.post_recv(1)
        one.post_write(0, source, 0, 10_000, target.va, target.rkey, 5)
        one.post_write(1, source, 0, 1, target.va, target.rkey)
        return one, other

    one, other = connect()
    corpus = a.packets_to_send(0, 64)
    for port, frame in corpus:
        b.receive(port, [frame], 0)
    corpus += b.packets_to_send(0, 64)
    now_ns = 0
    for _ in range(30_000):
        frame = mutate(rng.choice(corpus)[1], rng)
        now_ns += 50
        endpoint = rng.choice((a, b))
        endpoint.receive(rng.randrange(1, 5), [frame], now_ns)
        due_ns = endpoint.next_timer_ns()
        if due_ns is not None and due_ns <= now_ns:
            endpoint.handle_timer(now_ns)
        endpoint.packets_to_send(now_ns, 64)
        if QPState.ERROR in (one.state, other.state):
            a.destroy_qp(one, now_ns)
            b.destroy_qp(other, now_ns)
            one, other = connect()
            corpus += a.packets_to_send(now_ns, 64)
            del corpus[:-40]
    assert guard == bytes(4096)


def test_frames_look_like_rocev2() -> None:
    a = RoceEndpoint(profiles.parse(profile_data(0, encapsulation="none")), rng=Random(1))
    b = RoceEndpoint(profiles.parse(profile_data(1, encapsulation="none")), rng=Random(2))
    qp, peer = a.create_qp(a.create_cq(9), psn=5), b.create_qp(b.create_cq(9))
    qp.connect(peer.info(), 0)
    region = a.register_memory(bytearray(10_000))
    qp.post_write(0, region, 0, 10_000, 0x1234, 0x77)
    frames = []
    for now_ns in range(0, 100_000, 1000):
        frames += [frame for _, frame in a.packets_to_send(now_ns, 8)]
    bths = [shared.Bth.unpack(frame, 62) for frame in frames]
    assert [bth.opcode for bth in bths] == [wire.Opcode.WRITE_FIRST, wire.Opcode.WRITE_MIDDLE, wire.Opcode.WRITE_LAST]
    assert [bth.psn for bth in bths] == [5, 6, 7]
    assert shared.Reth.unpack(frames[0], 74) == shared.Reth(0x1234, 0x77, 10_000)
    assert [len(frame) for frame in frames] == [14 + 40 + 8 + 12 + 16 + 4096 + 4, 78 + 4096, 78 + 1808]
    assert all(int.from_bytes(frame[54:56], "big") >= 0xC000 for frame in frames)
    assert all(frame[56:58] == (4791).to_bytes(2, "big") for frame in frames)
