"""The OCP API's functions over uverbs, as a program has them: over the real socket, between two NICs in memory."""

import select
import time

import pytest

import mrclab
from benchmarks.rig.uverbs_rig import End, rig
from common import uverbs
from mrclab import EvState, QPAttrMask, QPState, SendWR, WCStatus
from tests.helpers.joined_ends import connect, drain, joined
from tests.helpers.waiting import eventually


def statuses(end: End, count: int) -> dict[int, WCStatus]:
    found: dict[int, WCStatus] = {}
    while len(found) < count:
        completions = end.cq.wait(20)
        assert completions
        found.update({completion.wr_id: completion.status for completion in completions})
    return found


# --- states and attributes -------------------------------------------------------------------------------------


def test_a_queue_pair_lives_again_after_an_error_and_a_reset(pair):
    _, one, other = pair
    for life in range(3):
        one.qp.post_send(SendWR(1, one.mr, 0, 64, other.mr.addr, other.mr.rkey ^ 1))
        one.write(other, 2, 0, 64)
        assert set(statuses(one, 2)) == {1, 2}
        assert one.qp.query().qp_state is QPState.ERR
        before = one.qp.info()
        for end in (one, other):
            end.qp.to_reset()
        assert one.qp.info()["psn"] != before["psn"], life
        assert one.qp.info()["qpn"] == before["qpn"]
        connect(one.qp, other.qp)
        one.mr.buf[:5] = b"life%d" % life
        one.write(other, 3, 0, 5)
        assert statuses(one, 1) == {3: WCStatus.SUCCESS}
        assert other.mr.read(5) == b"life%d" % life


def test_a_reset_forgets_what_is_posted_and_what_was_not_polled_and_frees_all_places(pair):
    _, one, other = pair
    one.write(other, 1, 0, 64)
    eventually(lambda: one.context._connection.receive(0) or bool(one.cq._ready), "it has completed")
    one.qp.post_recv(5, 6)
    one.qp.to_reset()
    assert one.cq.poll() == []
    assert one.cq.outstanding == 0
    other.qp.to_reset()
    connect(one.qp, other.qp)
    one.qp.post_send(*[SendWR(7, one.mr, 0, 8, other.mr.addr, other.mr.rkey)] * 128)
    drain(one.cq, 128)


def test_modify_takes_the_named_attributes_and_query_the_mask(mrc):
    _, one, _ = mrc
    one.qp.modify(timeout=17, linear_cnt=3)
    found = one.qp.query(QPAttrMask.TIMEOUT | QPAttrMask.RETRY_CNT | QPAttrMask.MPR_DEST)
    assert set(found.attributes) == {"timeout", "linear_cnt", "exp_cnt", "mpr_dest"}
    assert (found.attributes["timeout"], found.attributes["linear_cnt"]) == (17, 3)
    with pytest.raises(mrclab.RefusedError, match="timeout is 25; it must be from 0 to 24"):
        one.qp.modify(timeout=25)
    with pytest.raises(mrclab.RefusedError, match="is in RTS, not in INIT; nothing was modified"):
        one.qp.modify(cur_state=QPState.INIT, timeout=12)
    assert one.qp.query().attributes["timeout"] == 17


def test_attributes_set_on_the_way_to_init_are_in_what_the_peer_is_told(mrc):
    _, one, _ = mrc
    qp = one.context.create_qp(one.cq)
    qp.to_init(mpr_dest=9, max_wimm_dest=7, cap=2)
    info = qp.info()
    assert (info["mpr"], info["max_write_imm"], info["dynamic_mpr"]) == (9, 7, True)


def test_the_baseline_has_its_own_attributes_and_refuses_what_is_mrcs():
    with rig("roce") as made:
        one, _ = joined(made)
        one.qp.modify(timeout=15, retry_cnt=2)
        assert dict(one.qp.query(QPAttrMask.TIMEOUT | QPAttrMask.RETRY_CNT).attributes) == {
            "timeout": 15,
            "retry_cnt": 2,
        }
        for call in (
            one.context.create_qp_hint,
            one.context.query_ev_profile,
            one.context.query_cc_profile,
            lambda: one.context.create_ev_event_cq(4),
            lambda: one.context.ep_batch_send_wait([("h", 1, 1)]),
        ):
            with pytest.raises(mrclab.RefusedError, match="are MRC's; this NIC runs another transport"):
                call()


# --- unsignaled writes -----------------------------------------------------------------------------------------


def test_unsignaled_writes_free_their_places_without_a_completion(pair):
    _, one, other = pair
    place = other.mr.addr, other.mr.rkey
    posted = polled = 0
    while posted < 2000:
        quiet = [SendWR(1, one.mr, 0, 64, *place, signaled=False)] * 31
        try:
            one.qp.post_send(*quiet, SendWR(2, one.mr, 0, 64, *place))
        except mrclab.QueueFullError:
            done = one.cq.wait(20)
            assert {completion.wr_id for completion in done} == {2}
            polled += len(done)
        else:
            posted += 32
    while polled < posted // 32:
        polled += len(one.cq.wait(20))
    assert polled == posted // 32
    eventually(lambda: one.context._connection.receive(0) or one.cq.outstanding == 0, "all places are free")
    assert one.qp._sends == 0


def test_an_unsignaled_write_that_fails_is_told_of(pair):
    _, one, other = pair
    one.qp.post_send(
        SendWR(1, one.mr, 0, 64, other.mr.addr, other.mr.rkey ^ 1, signaled=False),
        SendWR(2, one.mr, 0, 64, other.mr.addr, other.mr.rkey, signaled=False),
    )
    assert statuses(one, 2) == {1: WCStatus.REM_ACCESS_ERR, 2: WCStatus.WR_FLUSH_ERR}
    assert one.cq.outstanding == 0


# --- writes of no bytes ----------------------------------------------------------------------------------------


def test_a_write_of_no_bytes_takes_no_memory_and_a_receive_only_with_its_immediate(pair):
    _, one, other = pair
    other.qp.post_recv(5, 6)
    one.qp.post_send(
        SendWR(1, one.mr, 0, 64, other.mr.addr, other.mr.rkey),
        SendWR(2, None, 0, 0, 0, 0, imm_data=7),
        SendWR(3, None, 0, 0, (1 << 64) - 1, 0xFFFFFFFF),
        SendWR(4, one.mr, 1 << 30, 0, 0, other.mr.rkey ^ 1, imm_data=8),
    )
    assert statuses(one, 4) == dict.fromkeys((1, 2, 3, 4), WCStatus.SUCCESS)
    assert [(done.wr_id, done.byte_len, done.imm_data) for done in drain(other.cq, 2)] == [(5, 0, 7), (6, 0, 8)]
    with pytest.raises(mrclab.RefusedError, match="a write of 1 bytes from byte 0 of a region of 0"):
        one.qp.post_send(SendWR(5, None, 0, 1, 0, 0))


# --- channels --------------------------------------------------------------------------------------------------


def test_each_channel_wakes_for_its_own_queues_once_an_arming(pair):
    made, _, _ = pair
    with mrclab.Context(made.names[0]) as here, mrclab.Context(made.names[1]) as there:
        channels = [here.create_comp_channel() for _ in range(2)]
        cqs = [here.create_cq(64, channel) for channel in channels]
        mr, target = here.reg_mr(4096), there.reg_mr(4096)
        qps = [here.create_qp(cq) for cq in cqs]
        for qp in qps:
            connect(qp, there.create_qp(there.create_cq(4)))
        cqs[1].req_notify()
        for _ in range(3):
            qps[1].post_send(SendWR(1, mr, 0, 8, target.addr, target.rkey))
        assert channels[1].get_cq_event(20) is cqs[1]
        qps[0].post_send(SendWR(1, mr, 0, 8, target.addr, target.rkey))  # whose queue is not armed
        drain(cqs[1], 3)
        assert cqs[0].wait(20)
        assert select.select(channels, [], [], 0)[0] == []
        with pytest.raises(mrclab.RefusedError, match=r"1 events of CQ \d+ are not acknowledged"):
            cqs[1].close()
        cqs[1].ack_events(1)
        with pytest.raises(mrclab.RefusedError, match="which 1 queues still have"):
            channels[0].close()


def test_what_came_before_the_arming_and_was_not_seen_is_an_event_at_once(pair):
    made, _, other = pair
    with mrclab.Context(made.names[0]) as here:
        channel = here.create_comp_channel()
        cq = here.create_cq(64, channel)
        qp, mr = here.create_qp(cq), here.reg_mr(4096)
        connect(qp, other.context.create_qp(other.context.create_cq(4)))
        qp.post_send(SendWR(1, mr, 0, 8, other.mr.addr, other.mr.rkey))
        assert select.select([here], [], [], 20)[0]  # it lies in the socket, unread
        cq.req_notify()
        assert channel.get_cq_event(20) is cq
        assert [done.wr_id for done in cq.poll()] == [1]
        cq.req_notify()
        assert channel.get_cq_event(0.2) is None


def test_a_solicited_arming_sleeps_through_what_nobody_asked_attention_for(pair):
    made, one, _ = pair
    with mrclab.Context(made.names[1]) as there:
        channel = there.create_comp_channel()
        cq = there.create_cq(64, channel)
        qp, peer = one.context.create_qp(one.cq), there.create_qp(cq)
        target = there.reg_mr(4096)
        peer.post_recv(*range(8))
        connect(qp, peer)
        cq.req_notify(solicited_only=True)
        for number, solicited in enumerate([False, False, True]):
            qp.post_send(SendWR(1, one.mr, 0, 8, target.addr, target.rkey, imm_data=number, solicited=solicited))
            if not solicited:
                assert statuses(one, 1)
        assert channel.get_cq_event(20) is cq
        seen: list[int | None] = []
        while len(seen) < 3:
            seen += [done.imm_data for done in cq.wait(20)]
        assert seen == [0, 1, 2]
        cq.req_notify(solicited_only=True)
        peer.modify(QPState.ERR)  # a failure is always worth attention
        assert channel.get_cq_event(20) is cq


def test_an_event_loop_over_channels_sleeps_and_misses_nothing(pair):
    """Get an event, acknowledge it, arm, poll until empty: a thousand immediates, one by one and in heaps."""
    made, one, _ = pair
    with mrclab.Context(made.names[1]) as there:
        channel = there.create_comp_channel()
        cq = there.create_cq(256, channel)
        qp, peer, target = one.context.create_qp(one.cq), there.create_qp(cq), there.reg_mr(4096)
        peer.post_recv(*range(64))
        connect(qp, peer)
        got, sent = 0, 0
        cq.req_notify()
        while got < 1000:
            while sent - got < (1, 3, 40)[sent % 3] and sent < 1000:
                qp.post_send(SendWR(1, one.mr, 0, 8, target.addr, target.rkey, imm_data=sent))
                sent += 1
            assert channel.get_cq_event(20) is cq
            cq.ack_events()
            cq.req_notify()
            while done := cq.poll():
                got += len(done)
                peer.post_recv(*range(len(done)))
            one.cq.poll(64)


def test_a_program_that_never_takes_its_events_costs_only_itself_and_gets_them_all(pair):
    """More events than a socket holds: the queue is armed again and again, and each arming finds a completion."""
    made, one, other = pair
    with mrclab.Context(made.names[0]) as here:
        channel = here.create_comp_channel()
        cqs = [here.create_cq(8, channel) for _ in range(60)]
        for cq in cqs:
            qp = here.create_qp(cq)
            qp.to_init()
            qp.post_recv(1)
            qp.modify(QPState.ERR)
        for _ in range(20):
            for cq in cqs:
                here._connection.arm(uverbs.Arm(cq.number, 0, False))
        here.query_device()
        one.write(other, 1, 0, 64)
        assert statuses(one, 1) == {1: WCStatus.SUCCESS}
        told = set()
        while (woken := channel.get_cq_event(1)) is not None:
            told.add(woken.number)
        assert told == {cq.number for cq in cqs}


def test_the_end_of_the_agent_wakes_who_sleeps_on_a_channel():
    with rig() as made:
        context = mrclab.Context(made.names[0])
        channel = context.create_comp_channel()
    with pytest.raises(mrclab.DeviceGoneError):
        channel.get_cq_event(20)
    context.close()


# --- hints, profiles, events, probes, ports --------------------------------------------------------------------


def test_hints_are_a_programs_own(mrc):
    _, one, _ = mrc
    hint = one.context.create_qp_hint(num_qps_per_peer=16)
    hint.modify(num_send_peers=2)
    assert hint.query() == {"num_qps_per_peer": 16, "num_send_peers": 2, "num_remote_recv_peers": 1}
    qp = one.context.create_qp(one.cq, qp_hint=hint.number)
    assert qp.query(QPAttrMask.HINT).attributes == {"qp_hint": hint.number}
    with pytest.raises(mrclab.RefusedError, match=r"is in use by QPs .* \(EBUSY\)$"):
        hint.close()
    words = "it must be 0 or one of this program's"
    with mrclab.Context(one.context.name) as stranger, pytest.raises(mrclab.RefusedError, match=words):
        stranger.create_qp(stranger.create_cq(4), qp_hint=hint.number)
    qp.close()
    hint.close()


def test_an_explicit_ev_profile_is_programmed_used_and_denied(mrc):
    made, one, other = mrc
    context = one.context
    every = context.query_ev_profile(0)
    assert (every.profile_state, every.ev_mode) == ("online", "auto")
    some = [(ev, port) for ev, port, _ in every.evs][::2]
    context.make_explicit_ev_profile(5, some, ev_min_active=2)
    found = context.query_ev_profile(5)
    assert (found.ev_mode, found.ev_count, found.ev_min_active) == ("explicit", len(some), 2)
    qp = context.create_qp(one.cq, ev_profile_id=5)
    connect(qp, other.context.create_qp(other.cq))
    context.modify_ev_profile(5, modify_ev_state=[[some[0][0], EvState.DENIED]])
    qp.post_send(SendWR(1, one.mr, 0, 1 << 20, other.mr.addr, other.mr.rkey))
    assert statuses(one, 1) == {1: WCStatus.SUCCESS}
    assert set(made.nics[0].qps[qp.qp_num].paths()) <= {ev for ev, _ in some[1:]}
    assert (*some[0], EvState.DENIED) in context.query_ev_profile(5).evs
    with pytest.raises(mrclab.RefusedError, match=r"is in use by QPs .* \(EBUSY\)$"):
        context.modify_ev_profile(5, profile_state="offline")
    qp.close()
    context.modify_ev_profile(5, profile_state="offline")
    context.modify_ev_profile(5, profile_state="init")


def test_a_generated_ev_profile_is_made_of_fields(mrc):
    _, one, _ = mrc
    fields = [[16, 0, 1, 1, 1], [16, 0, 0, 3, 3]]
    one.context.modify_ev_profile(6, profile_state="offline", ev_mode="generated", fields=fields)
    one.context.modify_ev_profile(6, profile_state="online")
    found = one.context.query_ev_profile(6)
    assert [list(row) for row in found.fields] == fields
    assert [ev for ev, _, _ in found.evs] == [0x10000, 0x10001, 0x10002, 0x10003]


def test_a_congestion_control_profile_is_programmed_and_used(mrc):
    made, one, other = mrc
    one.context.modify_cc_profile(3, "uet-1.0-nscc", max_cwnd=50_000)
    assert one.context.query_cc_profile(3)["config"]["max_cwnd"] == 50_000
    qp = one.context.create_qp(one.cq)
    qp.to_init(cc_profile_id=3)
    qp.to_rtr(other.qp.info())
    qp.to_rts()
    assert made.nics[0].qps[qp.qp_num].requester.cc.window_bytes == 50_000
    with pytest.raises(mrclab.RefusedError, match="there is no congestion control 'bbr'"):
        one.context.modify_cc_profile(3, "bbr")


def test_ev_events_come_by_a_channel_and_count_what_was_lost(mrc):
    _, one, _ = mrc
    channel = one.context.create_comp_channel()
    events = one.context.create_ev_event_cq(3, channel)
    events.req_notify()
    evs = [ev for ev, _, _ in one.context.query_ev_profile(0).evs[:5]]
    # A controller takes EVs out and lets them back: each return is an event GOOD.
    one.context.modify_ev_profile(0, modify_ev_state=[[ev, EvState.DENIED] for ev in evs])
    one.context.modify_ev_profile(0, modify_ev_state=[[ev, EvState.GOOD] for ev in evs])
    assert channel.get_cq_event(20) is events
    assert [(one_.state, one_.drop_count) for one_ in events.poll()] == [(EvState.GOOD, 0)] * 3
    one.context.modify_ev_profile(0, modify_ev_state=[[evs[0], EvState.DENIED]])
    one.context.modify_ev_profile(0, modify_ev_state=[[evs[0], EvState.GOOD]])
    (last,) = events.poll()
    assert (last.ev, last.drop_count) == (evs[0], 2)
    assert events.poll() == []
    events.ack_events()
    events.close()


def test_ev_probes_return_round_trips_and_those_over_dead_paths_do_not(mrc):
    made, one, _ = mrc
    peer = made.names[1]
    evs = [(peer, ev, port) for ev, port, _ in one.context.query_ev_profile(0).evs]
    answers = one.context.ep_batch_send_wait(evs, timeout_s=4)
    assert {answer.req_id for answer in answers} == set(range(len(evs)))
    assert all(answer.port == evs[answer.req_id][2] and 0 < answer.rtt < 10**9 for answer in answers)
    assert {answer.adj_svc_time for answer in answers} == {0}
    made.lose_every = 1
    began_s = time.monotonic()
    assert one.context.ep_batch_send_wait(evs[:2], timeout_s=0.3) == []
    assert time.monotonic() - began_s < 10
    made.lose_every = 0
    with pytest.raises(mrclab.RefusedError, match="has EV 0x5555 on port 1; valid: "):
        one.context.ep_batch_send_wait([(peer, 0x5555, 1)])
    with pytest.raises(mrclab.RefusedError, match="host 'nobody'; valid: "):
        one.context.ep_batch_send_wait([("nobody", 1, 1)])
    with pytest.raises(mrclab.RefusedError, match="it announces what modify_port does"):
        one.context.ep_batch_send_wait(evs[:1], op_type="port_status_update")


def test_a_port_is_switched_off_and_on_and_peers_are_told(pair):
    made, one, other = pair
    one.context.modify_port(2, enabled=False)
    assert one.context.query_port(2) is False
    assert [port.up for port in one.context.query_device().ports] == [True, False, True, True]
    if hasattr(made.nics[1], "peers"):
        told = made.nics[1].peers.named(made.names[0])
        eventually(lambda: told.ports & 0b1111 == 0b1101, "the peer was told")
        one.write(other, 1, 0, 1 << 20)
        assert statuses(one, 1) == {1: WCStatus.SUCCESS}
    one.context.modify_port(2, enabled=True)
    assert all(port.up for port in one.context.query_device().ports)
    with pytest.raises(mrclab.RefusedError, match="has no port 9; valid: 1, 2, 3, 4"):
        one.context.query_port(9)
    causes = {line["cause"] for line in made.lines if line["kind"] == "plane" and line["side"] == "local"}
    assert causes <= {"admin"}
