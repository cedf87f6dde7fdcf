"""Every transition of an EV, one named test each, and what the set of EVs makes of them."""

from itertools import pairwise

import pytest

from endpoint.mrc.paths.ev_set import EvPath, EvSet
from endpoint.mrc.paths.ev_state import TRANSITIONS, EvCause, EvState, IllegalTransition, transition
from endpoint.nic.config import NEVER
from endpoint.nic.wire import Opcode, PathMark
from tests.helpers.transport import Bench, ev_set

G, S, B, D = EvState.GOOD, EvState.SKIP, EvState.ASSUMED_BAD, EvState.DENIED

# Written out again by hand from the facts: ECN or trim rests the EV, a last-hop trim changes nothing, silent loss takes
# it out, probes bring it back, a controller overrules everything.
EXPECTED = {
    EvCause.ECN: {G: S, S: S, B: B, D: D},
    EvCause.TRIM: {G: S, S: S, B: B, D: D},
    EvCause.TRIM_LASTHOP: {G: G, S: S, B: B, D: D},
    EvCause.ALWAYS_SKIP: {G: B, S: B, B: B, D: D},
    EvCause.LOSS: {G: B, S: B, B: B, D: D},
    EvCause.LOSS_AT_FLOOR: {G: S, S: S, B: B, D: D},
    EvCause.LATE_ACK: {G: G, S: S, B: G, D: D},
    EvCause.TURN: {S: G},
    EvCause.PROBED: {G: G, S: G, B: G, D: D},
    EvCause.PROBED_MARKED: {G: S, S: S, B: S, D: D},
    EvCause.DENY: {G: D, S: D, B: D, D: D},
    EvCause.ALLOW: {D: G},
}
CASES = [(state, cause) for cause in EvCause for state in EvState]


@pytest.mark.parametrize(("state", "cause"), CASES, ids=[f"{s.value} on {c.value}" for s, c in CASES])
def test_each_transition(state: EvState, cause: EvCause) -> None:
    expected = EXPECTED[cause].get(state)
    if expected is None:
        with pytest.raises(IllegalTransition, match=f"{state.name} cannot undergo {cause.name}"):
            transition(state, cause)
    else:
        assert transition(state, cause) is expected


def test_the_table_has_no_other_entries() -> None:
    assert len(TRANSITIONS) == sum(len(row) for row in EXPECTED.values())


class Changes(list[tuple[int, str, str, str]]):
    def __call__(self, path: EvPath, old: EvState, cause: EvCause) -> None:
        self.append((path.ev, old.value, path.state.value, cause.value))


def make_set(
    planes: int = 2, evs_per_plane: int = 4, active: int = 128, backup: int = 64, floor: float = 0.25
) -> tuple[EvSet, Changes]:
    changes, shape = Changes(), {"planes": planes, "evs_per_plane": evs_per_plane}
    return ev_set(active, backup, shape=shape, on_change=changes, floor_share=floor), changes


def test_with_few_paths_all_are_active_and_none_are_backups() -> None:
    evs, _ = make_set(planes=4, evs_per_plane=8)
    assert [len(plane.active) for plane in evs.planes] == [8] * 4
    assert [len(plane.backups) for plane in evs.planes] == [0] * 4


def test_with_many_paths_the_active_set_is_a_random_subset_in_equal_numbers_and_the_rest_backs_it_up() -> None:
    evs, _ = make_set(planes=4, evs_per_plane=60, active=128, backup=64)
    assert [len(plane.active) for plane in evs.planes] == [32] * 4
    assert [len(plane.backups) for plane in evs.planes] == [16] * 4
    assert sorted(path.ev & 0xFFFF for path in evs.planes[0].active) != list(range(32))


def test_a_lost_ev_is_replaced_by_a_backup_of_its_own_plane() -> None:
    evs, changes = make_set(planes=2, evs_per_plane=8, active=8, backup=8)
    plane, other = evs.planes
    victim = plane.active[0]
    before = set(other.active)
    evs.signal(victim, EvCause.LOSS, 0)
    assert victim.state is B
    assert len(plane.active) == 4
    assert len(plane.backups) == 3
    assert victim in plane.out
    assert set(other.active) == before
    assert all(path.plane is plane for path in plane.active)
    assert changes == [(victim.ev, "good", "assumed_bad", "loss")]


def test_a_plane_without_evs_left_is_no_longer_live_and_comes_back_with_one() -> None:
    evs, _ = make_set(planes=4, evs_per_plane=1)
    victim = evs.planes[2].active[0]
    evs.signal(victim, EvCause.LOSS, 0)
    assert [plane.number for plane in evs.live] == [0, 1, 3]
    evs.probe_answered(victim, 10, False, 10)
    assert [plane.number for plane in evs.live] == [0, 1, 3]
    evs.probe_answered(victim, 20, False, 20)
    assert [plane.number for plane in evs.live] == [0, 1, 2, 3]
    assert victim.state is G


def lose(evs: EvSet, path: EvPath, *, alive: bool, proved: bool = True) -> None:
    """A packet is lost on the EV; `alive`: another that was sent later has been acknowledged."""
    path.alive_ns = 200 if alive else 50
    evs.lose(path, 100, 300, proved=proved)


def test_silent_loss_stops_taking_evs_out_at_the_floor() -> None:
    evs, _ = make_set(planes=2, evs_per_plane=4, floor=0.25)
    for _ in range(3):
        for plane in evs.planes:
            for path in list(plane.active):
                lose(evs, path, alive=True)
    left = [path for plane in evs.planes for path in plane.active]
    assert len(left) == 2
    assert all(path.state is S for path in left)


def test_each_plane_has_a_floor_of_its_own() -> None:
    evs, _ = make_set(planes=4, evs_per_plane=8, floor=0.25)
    assert [plane.floor for plane in evs.planes] == [2, 2, 2, 2]
    for path in list(evs.planes[0].active):
        lose(evs, path, alive=True)
    assert [len(plane.active) for plane in evs.planes] == [2, 8, 8, 8]


@pytest.mark.parametrize("suspects", [True, False])
def test_at_the_floor_the_second_loss_with_nothing_acknowledged_since_takes_the_ev_out(suspects: bool) -> None:
    evs = ev_set(4, suspects_planes=suspects, shape={"planes": 4, "evs_per_plane": 1})
    (victim,) = evs.planes[2].active
    lose(evs, victim, alive=False)
    assert victim.state is S
    lose(evs, victim, alive=False)
    assert victim.state is B
    assert [plane.number for plane in evs.live] == [0, 1, 3]


@pytest.mark.parametrize(("acked_between", "stays"), [(16, True), (4, True), (3, False), (1, False)])
def test_at_the_floor_an_ev_that_loses_one_packet_in_five_stays_and_a_worse_one_goes(acked_between, stays) -> None:
    evs, _ = make_set(planes=4, evs_per_plane=1)
    (victim,) = evs.planes[2].active
    for _ in range(40):
        if victim.state is not B:
            lose(evs, victim, alive=True)
        for one in (victim, victim.plane):
            one.suspicion = max(0, one.suspicion - acked_between)
    assert (victim.state is not B) is stays


def test_a_plane_whose_every_packet_vanishes_goes_as_a_whole_before_each_ev_has_lost_one() -> None:
    evs, changes = make_set(planes=4, evs_per_plane=48)
    plane = evs.planes[1]
    assert len(plane.active) + len(plane.backups) == 48
    losses = 0
    while plane.active:
        lose(evs, plane.active[0], alive=False)
        losses += 1
    assert losses == 8
    assert len(plane.out) == 48
    assert {cause for *_, cause in changes} == {"loss"}


@pytest.mark.parametrize(("proved", "live"), [(True, 1), (False, 4)])
def test_the_last_ev_of_all_stays_and_all_of_them_in_a_silence_of_the_whole_peer(proved: bool, live: int) -> None:
    """A retransmission timeout proves no loss, and blames every path alike."""
    evs, _ = make_set(planes=4, evs_per_plane=1)
    for _ in range(50):
        for path in evs.paths.values():
            lose(evs, path, alive=False, proved=proved)
    assert sum(len(plane.active) for plane in evs.planes) == len(evs.live) == live


def test_an_ev_whose_packet_was_only_late_is_free_of_suspicion() -> None:
    evs, _ = make_set(planes=4, evs_per_plane=1)
    (victim,) = evs.planes[2].active
    lose(evs, victim, alive=False)
    evs.signal(victim, EvCause.LATE_ACK, 0)
    lose(evs, victim, alive=False)
    assert victim.state is S


def test_a_controller_may_go_below_the_floor() -> None:
    evs, _ = make_set(planes=2, evs_per_plane=1)
    for plane in evs.planes:
        for path in list(plane.active):
            evs.signal(path, EvCause.DENY, 0)
    assert evs.live == []


def test_a_resting_ev_is_passed_over_once_and_then_used() -> None:
    """OCP MRC 7.5.5.5, 11.2.2: a SACK with M = 0b01, "Skip once", puts its EV in SKIP. The rotation that meets it makes
    it GOOD and does not use it for this packet; data never uses SKIP; repeated marks meanwhile do not re-arm."""
    evs, _ = make_set(planes=1, evs_per_plane=4)
    plane = evs.planes[0]
    scan = [plane.take() for _ in range(4)]
    resting = scan[0]
    assert resting is not None
    for _ in range(3):
        evs.signal(resting, EvCause.ECN, 0)
    assert resting.state is S
    turns: list[EvPath | None] = []
    while resting.state is S:
        turns.append(plane.take())
    assert resting not in turns
    assert resting in [plane.take() for _ in range(8)]


def test_at_most_one_resting_ev_is_restored_a_packet_and_a_good_one_is_used_when_all_rest() -> None:
    """The same sections: at most one SKIP becomes GOOD for a packet, and the EV that the packet goes by is GOOD."""
    evs, _ = make_set(planes=1, evs_per_plane=4)
    plane = evs.planes[0]
    for path in plane.active:
        evs.signal(path, EvCause.ECN, 0)
    for packet in range(1, 5):
        taken = plane.take()
        assert taken is not None
        assert taken.state is G
        assert 1 <= sum(one.state is G for one in plane.active) <= packet


def test_each_scan_uses_every_ev_once_in_a_new_order() -> None:
    evs, _ = make_set(planes=1, evs_per_plane=16)
    plane = evs.planes[0]
    scans = [[plane.take() for _ in range(16)] for _ in range(4)]
    for scan in scans[1:]:
        assert len(set(scan)) == 16
    assert scans[1] != scans[2] != scans[3]


def an_ev_out() -> tuple[EvSet, EvPath]:
    """Of two planes with four EVs each."""
    evs, _ = make_set(planes=2, evs_per_plane=4)
    victim = evs.planes[0].active[0]
    evs.signal(victim, EvCause.LOSS, 0)
    return evs, victim


def test_probes_are_due_at_once_then_back_off_while_unanswered() -> None:
    evs, victim = an_ev_out()
    now_ns, times = 0, []
    for _ in range(6):
        due_ns = evs.next_probe_ns()
        now_ns = max(now_ns, due_ns)
        assert evs.due_probes(now_ns, 8) == [victim]
        times.append(now_ns)
    assert [after - before for before, after in pairwise(times)] == [1000, 2000, 4000, 8000, 8000]


def test_after_a_timeout_what_is_out_is_probed_at_once_and_often_again() -> None:
    """A hunt found a queue pair that sent on a dead path for 22 round trips, and probed its sound path ever less."""
    evs, victim = an_ev_out()
    for now_ns in (0, 1000, 3000, 7000, 15_000):
        assert evs.due_probes(now_ns, 8) == [victim]
    assert evs.probe_soon(16_000) == 16_000
    assert evs.due_probes(16_000, 8) == [victim]
    assert evs.next_probe_ns() == 18_000


def test_an_unanswered_probe_ends_the_streak() -> None:
    evs, victim = an_ev_out()
    evs.due_probes(0, 8)
    evs.probe_answered(victim, 100, False, 100)
    evs.due_probes(1000, 8)  # goes unanswered
    evs.due_probes(2000, 8)
    evs.probe_answered(victim, 2100, False, 2100)
    assert victim.state is B
    evs.due_probes(10_000, 8)
    evs.probe_answered(victim, 10_100, True, 10_100)
    assert victim.state is S  # the last probe was marked


def test_a_probe_is_not_unanswered_while_its_answer_may_still_be_on_its_way() -> None:
    """A hunt found full queues: every answer took longer than the time between two probes, and no path returned."""
    evs, victim = an_ev_out()
    assert evs.due_probes(0, 8, 2500) == [victim]  # the interval is 1000
    assert evs.due_probes(2400, 8, 2500) == []
    evs.probe_answered(victim, 0, False, 2400)
    assert evs.due_probes(3400, 8, 2500) == [victim]
    evs.probe_answered(victim, 3400, False, 5800)
    assert victim.state is G


def test_the_answer_to_a_probe_from_before_the_loss_proves_nothing() -> None:
    bench = Bench(evs_per_plane=8)
    qp = bench.qp_a
    victim = next(iter(qp.evs.paths.values()))
    qp.requester.probe(victim, bench.now_ns)
    bench.to_b(*bench.out(bench.a, Opcode.PROBE))
    (answer,) = bench.answers(Opcode.SACK)
    bench.wait(0.5)
    qp.evs.signal(victim, EvCause.LOSS, bench.now_ns)
    bench.to_a(answer)
    assert victim.state is B
    assert victim.streak == 0

    for _ in range(2):  # each of these was sent after the loss
        bench.later(2)
        bench.to_b(*bench.out(bench.a, Opcode.PROBE))
        bench.to_a(*bench.answers(Opcode.SACK))
    assert victim.state is G


def probe(bench: Bench, path: EvPath, mark: int) -> EvState:
    """The EV's state after a probe on it that is answered with this path mark."""
    bench.wait()
    bench.qp_a.requester.probe(path, bench.now_ns)
    bench.to_b(*bench.out(bench.a, Opcode.PROBE))
    (answer,) = bench.answers(Opcode.SACK)
    bench.to_a(answer.with_path_mark(mark))
    return path.state


def test_a_probe_answered_with_always_skip_has_failed() -> None:
    """OCP MRC figure 5: only the answers NONE and SKIP_ONCE bring an EV back."""
    none, once, always = PathMark.NONE, PathMark.SKIP_ONCE, PathMark.ALWAYS_SKIP
    bench = Bench()
    path = bench.qp_a.evs.planes[0].active[0]
    bench.qp_a.evs.signal(path, EvCause.LOSS, bench.now_ns)
    assert [probe(bench, path, mark) for mark in (always, always, always, none, always, none)] == [B] * 6
    assert probe(bench, path, once) is S


def test_a_probe_answered_with_skip_once_rests_its_ev() -> None:
    """OCP MRC figure 5: a SACK with SKIP_ONCE makes an EV SKIP, whether data or a probe was marked."""
    bench = Bench()
    path, other = bench.qp_a.evs.planes[0].active[:2]
    assert probe(bench, path, PathMark.NONE) is G
    assert probe(bench, path, PathMark.SKIP_ONCE) is S
    assert other.state is G
    assert (bench.qp_a.requester.marks, bench.qp_a.requester.skips) == (1, 1)
    assert path not in [path.plane.take() for _ in range(len(path.plane.active) - 1)]


def test_a_probe_answered_with_skip_once_rests_no_ev_where_the_selection_heeds_no_signals() -> None:
    bench = Bench(selection="oblivious")
    assert probe(bench, bench.qp_a.evs.planes[0].active[0], PathMark.SKIP_ONCE) is G
    assert (bench.qp_a.requester.marks, bench.qp_a.requester.skips) == (1, 0)


def test_a_probe_answered_with_always_skip_takes_its_ev_out() -> None:
    bench = Bench()
    path = bench.qp_a.evs.planes[0].active[0]
    assert probe(bench, path, PathMark.ALWAYS_SKIP) is B
    events = [bench.a.next_event() for _ in range(len(bench.a.log))]
    changes = [event.fields for event in events if event is not None and event.kind == "ev"]
    assert [(fields["ev"], fields["cause"]) for fields in changes] == [(path.ev, "always_skip")]
    assert not path.active


@pytest.mark.parametrize(("mark", "state"), [(PathMark.NONE, G), (PathMark.SKIP_ONCE, S), (PathMark.ALWAYS_SKIP, B)])
def test_a_late_packet_does_not_overrule_the_path_mark_that_came_with_it(mark: int, state: EvState) -> None:
    """The late packet proves the EV sound, but the receiver wants the EV left alone."""
    bench = Bench(sack_threshold_bytes=0)
    (write,) = bench.write()
    path = bench.qp_a.evs.paths[write.ev]
    bench.qp_a.requester._lose(0, bench.now_ns, proved=True)
    assert path.state is B
    bench.to_b(write)
    (sack,) = bench.answers(Opcode.SACK)
    bench.to_a(sack.with_path_mark(mark))
    assert path.state is state
    assert path.active is (state is not B)


def test_a_late_packet_does_not_overrule_the_path_mark_of_a_probe() -> None:
    bench = Bench()
    (write,) = bench.write()
    path = bench.qp_a.evs.paths[write.ev]
    bench.qp_a.requester._lose(0, bench.now_ns, proved=True)
    bench.to_b(write)
    bench.answers()  # these are lost
    assert probe(bench, path, PathMark.ALWAYS_SKIP) is B
    assert not path.active


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("mark", "kept"), [(PathMark.NONE, True), (PathMark.SKIP_ONCE, True), (PathMark.ALWAYS_SKIP, False)]
)
def test_an_ev_that_the_peer_wants_left_alone_becomes_no_reverse_ev(mark: int, kept: bool, plain: bool) -> None:
    bench = Bench(planes=1, sack_threshold_bytes=0)
    reverse = bench.qp_a.reverse
    bench.post(2)
    (write,) = [packet for packet in bench.writes() if packet.ev != reverse.routes[1].ev][:1]
    bench.to_b(write)
    (sack,) = bench.answers(Opcode.SACK)
    sack = sack.with_path_mark(mark)
    bench.to_a(sack.with_dscp(20) if plain else sack)  # the mark of a trim, which only the plain layout reads
    assert bench.qp_a.requester.acked_bytes == 4096
    assert (reverse.routes[1].ev == write.ev) is kept


def test_time_in_which_the_host_did_not_run_does_not_pass_for_a_path_that_is_out() -> None:
    evs, _ = make_set(planes=2, evs_per_plane=4)
    victim = evs.planes[0].active[0]
    evs.signal(victim, EvCause.LOSS, 1000)
    evs.due_probes(1000, 8)
    evs.host_was_late(500, 1600)
    assert (victim.left_ns, evs.next_probe_ns()) == (1500, 2500)
    evs.host_was_late(5000, 6600)
    assert (victim.left_ns, evs.next_probe_ns()) == (6500, 7500)
    evs.host_was_late(500, 6600)
    assert victim.left_ns == 6600  # never later than now


def test_a_path_that_is_taken_out_is_probed_at_once() -> None:
    bench = Bench(evs_per_plane=8)
    victim = next(iter(bench.qp_a.evs.paths.values()))
    bench.qp_a.evs.signal(victim, EvCause.LOSS, bench.now_ns)
    bench.timers()
    assert [probe.ev for probe in bench.out(bench.a, Opcode.PROBE)] == [victim.ev]


def test_losses_from_before_the_probes_do_not_take_out_again_what_the_probes_brought_back() -> None:
    """A hunt found a path that came back and was given up in the same instant, for a packet of the outage before."""
    evs, _ = make_set(planes=2, evs_per_plane=4)
    victim, other = evs.planes[0].active[:2]
    evs.lose(victim, 100, 300, proved=True)
    assert victim.state is B
    evs.probe_answered(victim, 400, False, 500)
    evs.lose(victim, 150, 600, proved=True)  # neither does it end the streak
    evs.probe_answered(victim, 610, False, 700)
    assert victim.state is G
    before = victim.suspicion
    for proved in (True, False):
        evs.lose(victim, 150, 700, proved=proved)
    assert (victim.state, victim.suspicion) == (G, before)
    evs.lose(other, 150, 700, proved=True)  # of which the probes say nothing
    assert other.state is B
    evs.lose(victim, 710, 900, proved=True)
    assert victim.state is B


def test_a_relapse_doubles_the_probes_that_are_needed() -> None:
    evs, _ = make_set(planes=2, evs_per_plane=4)
    victim = evs.planes[0].active[0]
    needed = []
    for now_ns in range(0, 50_000, 10_000):
        evs.signal(victim, EvCause.LOSS, now_ns)
        needed.append(victim.needed)
        while victim.state is B:
            evs.probe_answered(victim, now_ns + 10, False, now_ns + 10)
    assert needed == [2, 4, 8, 16, 16]
    evs.signal(victim, EvCause.LOSS, 10_000_000)
    assert victim.needed == 2


def test_relapses_do_not_count_while_the_only_ev_left_is_suspect() -> None:
    """A path that answers two probes is better than a path of which nothing arrives, however often it has failed."""
    evs, _ = make_set(planes=1, evs_per_plane=2)
    last, flapping = evs.planes[0].active
    for now_ns in range(0, 40_000, 10_000):
        evs.signal(flapping, EvCause.LOSS, now_ns)
        while now_ns < 30_000 and flapping.state is B:
            evs.probe_answered(flapping, now_ns + 10, False, now_ns + 10)
    assert flapping.needed == 16
    evs.lose(last, 31_000, 32_000, proved=True)
    for _ in range(3):
        evs.probe_answered(flapping, 33_000, False, 33_000)
    assert flapping.state is B  # one silent loss may be chance: the last EV is still in use
    evs.lose(last, 34_000, 35_000, proved=True)
    assert last.state is not B
    evs.probe_answered(flapping, 36_000, False, 36_000)
    assert flapping.state is G
    evs.lose(last, 37_000, 38_000, proved=True)
    assert last.state is B


def test_a_resurrected_ev_becomes_a_backup_when_its_plane_is_full() -> None:
    evs, _ = make_set(planes=2, evs_per_plane=8, active=8, backup=8)
    plane = evs.planes[0]
    victim = plane.active[0]
    evs.signal(victim, EvCause.LOSS, 0)
    for _ in range(2):
        evs.probe_answered(victim, 10, False, 10)
    assert victim in plane.backups
    assert len(plane.active) == 4


def test_a_denied_ev_is_neither_used_nor_probed_until_allowed() -> None:
    evs, changes = make_set(planes=2, evs_per_plane=4)
    victim = evs.planes[0].active[0]
    evs.signal(victim, EvCause.DENY, 0)
    assert evs.due_probes(0, 8) == []
    evs.probe_answered(victim, 10, False, 10)
    assert victim.state is D
    evs.signal(victim, EvCause.ALLOW, 20)
    assert victim in evs.planes[0].active
    assert [change[1:] for change in changes] == [("good", "denied", "deny"), ("denied", "good", "allow")]


def test_with_few_probes_allowed_the_ev_that_is_overdue_longest_is_probed_first() -> None:
    evs, _ = make_set(planes=2, evs_per_plane=32)
    every = [path for plane in evs.planes for path in plane.active]
    for path in every:
        evs.signal(path, EvCause.LOSS, 0)
    probed = [evs.due_probes(now_ns, 1) for now_ns in range(0, 64_000, 1000)]  # the interval is 1000
    assert probed == [[path] for path in every]
    assert evs.due_probes(64_000, 3) == every[:3]
    evs.due_probes(64_000, 64)
    assert evs.due_probes(1_000_000, 64) == every  # equally many are due and allowed: plane by plane


def test_probing_rests_while_the_plane_is_down() -> None:
    evs, _ = an_ev_out()
    evs.set_wanted(evs.planes[1].bit)
    assert evs.due_probes(0, 8) == []
    assert evs.next_probe_ns() == NEVER
    assert [plane.number for plane in evs.live] == [1]
