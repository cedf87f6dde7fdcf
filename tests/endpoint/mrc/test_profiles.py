"""Profiles of the API: EVs that queue pairs use, parameters of congestion control, and hints."""

import re
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from benchmarks.rig.profiles import profile as profile_data
from endpoint import FORM
from endpoint.mrc.congestion.cc_profile import RANGES, NsccConfig
from endpoint.mrc.congestion.nscc import Nscc
from endpoint.mrc.endpoint import Endpoint
from endpoint.mrc.hint import QpHint, QpHints
from endpoint.mrc.paths.ev_profile import EvField, EvMode, ProfileState
from endpoint.mrc.paths.ev_state import EvState
from endpoint.nic.attributes import BusyError, VerbError
from endpoint.nic.config import ConfigError
from endpoint.nic.wire import Opcode
from endpoint.transport import QueueFull
from tests.helpers.transport import Bench, Flow, Packet, Wire

ID = 7


def known(bench: Bench) -> list[tuple[int, int]]:
    return sorted((path.ev, path.port) for path in bench.a.profile.destinations["h1"].paths)


def explicit(nic: Any, entries: list[tuple[int, int]], number: int = ID, **more: Any) -> None:
    rows = [[0, 0, ev, port] for ev, port in entries]
    nic.control.modify_ev_profile(
        number, 0, profile_state="offline", ev_mode="explicit", ev_count=len(entries), replace_ev=rows, **more
    )
    nic.control.modify_ev_profile(number, 0, profile_state="online")


def test_a_qp_uses_all_evs_of_an_explicit_profile_and_no_others() -> None:
    bench = Bench()
    entries = known(bench)[::3]
    explicit(bench.a, entries)
    qp = bench.pair({"ev_profile_id": ID})[0]
    assert {(path.ev, path.port.number) for path in qp.evs.paths.values()} == set(entries)
    for _ in range(8):
        qp.post_write(1, bench.region, 0, 20 * 4096, bench.target.va, bench.target.rkey)
    used = {packet.ev for packet in bench.writes()}
    assert used <= {ev for ev, _ in entries}
    assert len(used) > len(entries) // 2


def test_two_explicit_profiles_keep_two_qps_apart_over_a_whole_transfer() -> None:
    wire = Wire()
    halves = [wire.profiles["h0"].destinations["h1"].paths[0::2], wire.profiles["h0"].destinations["h1"].paths[1::2]]
    flows = []
    for number, half in enumerate(halves, 1):
        for host in ("h0", "h1"):
            explicit(wire.transports[host], [(path.ev, path.port) for path in half], number)
        flows.append(Flow(wire, ev_profile_id=number))
    for flow in flows:
        flow.post(40_000, times=20)
    wire.run(1000 * wire.base_rtt_ns, stop=lambda: all(flow.finished for flow in flows))
    for flow, half in zip(flows, halves, strict=True):
        flow.check()
        assert set(flow.qp.paths()) <= {path.ev for path in half}


# The API's rule, worked by hand: fields from the most significant bit on; bits outside of the mask are the initial
# value's, bits in the mask are the generated number's, the most significant one first.
HAND = [
    (EvField(8, 0, 0, 179, 0xFF), [0x00, 0x5A, 0xB3], [0xB4, 0xFF]),
    (EvField(16, 0x100, 0, 255, 0xFF), [0x100, 0x1FF], [0x000, 0x0FF, 0x200]),
    (EvField(32, 0xDEADCAFE), [0xDEADCAFE], [0, 0xDEADCAFF]),
    (EvField(8, 0b0001_0000, 1, 2, 0b1000_0001), [0b0001_0001, 0b1001_0000], [0b0001_0000, 0b1001_0001, 0b0000_0001]),
]


@pytest.mark.parametrize(("field", "values", "others"), HAND)
def test_a_generated_field_has_the_values_that_the_rule_gives_it(field, values, others) -> None:
    field.check()
    assert all(field.has(value) for value in values)
    assert not any(field.has(value) for value in others)


@given(st.integers(1, 10), st.data())
def test_a_generated_field_has_as_many_values_as_its_range(width: int, data: st.DataObject) -> None:
    mask = data.draw(st.integers(0, (1 << width) - 1))
    high = data.draw(st.integers(0, (1 << mask.bit_count()) - 1))
    low = data.draw(st.integers(0, high))
    field = EvField(width, data.draw(st.integers(0, (1 << width) - 1)), low, high, mask)
    field.check()
    assert sum(map(field.has, range(1 << width))) == high - low + 1


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        # Planes 1 and 2 of 0 to 3, spines 2 to 5 of 0 to 7: the high half of an EV is the plane here, the low half the
        # spine.
        ([[16, 0, 1, 2, 0b11], [16, 0, 2, 5, 0b111]], {p << 16 | spine for p, spine in product((1, 2), range(2, 6))}),
        ([[16, 0, 0, 7, 0b111]], set(range(8))),  # of 16 bits: the spines of plane 0 alone
    ],
)
def test_a_generated_profile_has_the_paths_that_its_fields_name(fields: list[list[int]], expected: set[int]) -> None:
    bench = Bench()
    assert {ev >> 16 for ev, _ in known(bench)} == {0, 1, 2, 3}
    bench.a.control.modify_ev_profile(ID, 0, profile_state="offline", ev_mode="generated", fields=fields)
    bench.a.control.modify_ev_profile(ID, 0, profile_state="online")
    assert {ev for ev, _, _ in bench.a.control.query_ev_array(ID)} == expected
    assert set(bench.pair({"ev_profile_id": ID})[0].evs.paths) == expected


def test_a_profile_may_ask_for_no_active_ev_at_least() -> None:
    control = Bench().a.control
    control.modify_ev_profile(ID, 0, profile_state="offline", ev_mode="explicit", ev_min_active=0)
    assert control.query_ev_profile(ID).min_active == 0


def test_a_denied_ev_leaves_the_qps_of_its_profile_and_returns() -> None:
    bench = Bench()
    entries = known(bench)[:8]
    explicit(bench.a, entries)
    qp, other = bench.pair({"ev_profile_id": ID})[0], bench.qp_a
    ev = entries[0][0]
    bench.a.control.modify_ev_profile(ID, bench.now_ns, modify_ev_state=[[ev, 4]])
    assert qp.evs.paths[ev].state is EvState.DENIED
    assert other.evs.paths[ev].state is EvState.GOOD
    assert bench.pair({"ev_profile_id": ID})[0].evs.paths[ev].state is EvState.DENIED
    assert (ev, entries[0][1], 4) in bench.a.control.query_ev_array(ID)
    bench.a.set_denied({("h1", entries[1][0])}, bench.now_ns)
    assert {path.ev for path in qp.evs.paths.values() if path.state is EvState.DENIED} == {ev, entries[1][0]}
    bench.a.control.modify_ev_profile(ID, bench.now_ns, modify_ev_state=[[ev, 1]])
    assert {path.ev for path in qp.evs.paths.values() if path.state is EvState.DENIED} == {entries[1][0]}


def test_an_ev_that_a_profile_denies_carries_no_acknowledgements_and_no_requests() -> None:
    wire = Wire(planes=2, evs_per_plane=2)
    flow = Flow(wire)
    denied = {plane.active[0].ev for plane in flow.remote.evs.planes}
    wire.transports["h1"].control.modify_ev_profile(0, wire.now_ns, modify_ev_state=[[ev, 4] for ev in denied])
    carried: dict[Opcode, set[int]] = {}

    def tap(host: str, port: int, frame: bytes) -> None:
        packet = Packet(port, frame)
        if host == "h1" and (packet.opcode is not Opcode.SACK or not packet.seth.probe_response):
            carried.setdefault(packet.opcode, set()).add(packet.ev)

    wire.tap(tap)
    flow.keep_posted(50_000, 4, 40 * wire.base_rtt_ns)
    wire.run(60 * wire.base_rtt_ns)
    assert flow.finished
    for opcode in (Opcode.SACK, Opcode.ACKNOWLEDGE, Opcode.ENDPOINT_REQUEST):
        assert carried[opcode].isdisjoint(denied), opcode.name
    control = wire.transports["h1"].control
    control.modify_ev_profile(0, wire.now_ns, modify_ev_state=[[ev, 1] for ev in denied])
    flow.keep_posted(50_000, 4, 140 * wire.base_rtt_ns)
    wire.run(160 * wire.base_rtt_ns)
    assert carried[Opcode.ENDPOINT_REQUEST] & denied


def test_the_floor_is_the_profiles_own() -> None:
    bench = Bench()
    explicit(bench.a, known(bench)[:32], ev_min_active=16)
    assert {plane.floor for plane in bench.pair({"ev_profile_id": ID})[0].evs.planes} == {4}


def test_a_profile_goes_through_its_states_and_back_unless_a_qp_has_it() -> None:
    bench = Bench()
    control = bench.a.control
    explicit(bench.a, known(bench)[:4])
    qp = bench.pair({"ev_profile_id": ID})[0]
    with pytest.raises(BusyError, match=rf"in use by QPs \[{qp.qpn}\]; destroy them first"):
        control.modify_ev_profile(ID, 0, profile_state="offline")
    bench.a.destroy_qp(qp, 0)
    control.modify_ev_profile(ID, 0, profile_state="offline")
    with pytest.raises(VerbError, match=f"EV profile {ID} is in OFFLINE; ONLINE are 0"):
        bench.a.create_qp(bench.cq_a, ev_profile_id=ID)
    control.modify_ev_profile(ID, 0, profile_state="init")
    assert control.query_ev_profile(ID).state is ProfileState.INIT
    assert control.query_ev_profile(0).mode is EvMode.AUTO


def test_a_profile_without_a_path_to_the_peer_is_refused_on_the_way_to_rtr() -> None:
    bench = Bench()
    peer = bench.a.peers.named("h1")
    peer.routes = [route for route in peer.routes if route.port.number == 1]
    explicit(bench.a, [entry for entry in known(bench) if entry[1] == 2])
    with pytest.raises(VerbError, match=f"EV profile {ID} has no EV that leads to h1"):
        bench.pair({"ev_profile_id": ID})[0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"colour": 1}, "no attribute 'colour'; valid: profile_state, "),
        ({"profile_state": "up"}, "profile_state is 'up'; valid: init, offline, online"),
        ({"profile_state": "online"}, "is in INIT and cannot go to ONLINE; valid: OFFLINE"),
        ({"cur_profile_state": "online"}, "is in INIT, not in ONLINE"),
        ({"profile_state": "offline", "ev_mode": "x"}, "ev_mode is 'x'; valid: auto, explicit, generated"),
        ({"profile_state": "offline", "ev_mode": "explicit", "ev_count": 0}, "ev_count is 0; it must be an integer"),
        ({"profile_state": "offline", "ev_mode": "explicit", "fields": [[1, 0, 0, 0, 0]]}, "for GENERATED profiles"),
        ({"profile_state": "offline", "ev_mode": "generated", "fields": [[33, 0, 0, 0, 0]]}, "width is 33"),
        ({"profile_state": "offline", "ev_mode": "generated", "fields": [[4, 16, 0, 0, 0]]}, "init_val is 0x10"),
        ({"profile_state": "offline", "ev_mode": "generated", "fields": [[4, 0, 0, 2, 1]]}, "allows 0 to 1"),
        ({"profile_state": "offline", "ev_mode": "generated", "fields": [[32, 0, 0, 0, 0]] * 2}, "not 64"),
        ({"profile_state": "offline", "ev_mode": "generated", "fields": [[4]]}, "rows of 5 integers"),
        ({"profile_state": "offline", "ev_mode": "generated", "fields": 3}, "rows of 5 integers"),
        ({"profile_state": "offline", "replace_ev": [[0, 0, 1, 1]]}, "replaced in EXPLICIT ones only"),
        ({"profile_state": "offline", "modify_ev_state": [[1, 2]]}, "a controller sets 1"),
        ({"profile_state": "offline", "modify_ev_state": [[0x5555, 4]]}, "has no EV 0x5555"),
        ({"ev_event_mask": 1}, "is in INIT; set its attributes on the way to OFFLINE"),
        ({"profile_state": "offline", "ev_event_mask": 4}, "ev_event_mask is 4; it must be an integer from 0 to 3"),
    ],
)
def test_a_profile_that_cannot_be_is_refused_by_name_and_changes_nothing(given: dict[str, Any], words: str) -> None:
    control = Bench().a.control
    with pytest.raises(VerbError, match=words):
        control.modify_ev_profile(ID, 0, **given)
    assert control.query_ev_profile(ID).state is ProfileState.INIT


def test_an_explicit_profile_wants_every_place_filled_with_a_path_that_there_is() -> None:
    bench = Bench()
    control, (ev, port) = bench.a.control, known(bench)[0]
    control.modify_ev_profile(ID, 0, profile_state="offline", ev_mode="explicit", ev_count=2)
    with pytest.raises(VerbError, match="2 of its EVs are not there; replace the unset ones first"):
        control.modify_ev_profile(ID, 0, profile_state="online")
    with pytest.raises(VerbError, match=f"{ev:#x} on port {port + 1} names no path of this NIC; valid: "):
        control.modify_ev_profile(ID, 0, replace_ev=[[0, 0, ev, port + 1]])
    control.modify_ev_profile(ID, 0, replace_ev=[[0, 0, ev, port]])
    with pytest.raises(VerbError, match="already"):
        control.modify_ev_profile(ID, 0, replace_ev=[[0, 0, ev, port]])
    with pytest.raises(VerbError, match="has no EV 0x5 on port 1"):
        control.modify_ev_profile(ID, 0, replace_ev=[[5, 1, ev, port]])
    with pytest.raises(VerbError, match="ev_min_active is 3; the profile has 2 EVs"):
        control.modify_ev_profile(ID, 0, ev_min_active=3)


def test_profile_0_is_the_nics_own() -> None:
    control = Bench().a.control
    with pytest.raises(VerbError, match="EV profile 0 is the NIC's own and stays ONLINE"):
        control.modify_ev_profile(0, 0, profile_state="offline")
    with pytest.raises(VerbError, match="ONLINE; ev_mode can be set in OFFLINE only"):
        control.modify_ev_profile(0, 0, ev_mode="explicit")


API_NAMES = [
    *("disable_qa", "adjust_bytes_threshold", "adjust_period_threshold", "base_rtt", "eta", "fi", "fi_scale", "gamma"),
    *("max_md_jump", "max_cwnd", "qa_gate", "qa_threshold", "target_delay"),
]


def test_a_profile_has_the_thirteen_parameters_of_the_api() -> None:
    assert list(RANGES) == API_NAMES == list(NsccConfig.__dataclass_fields__)


def congestion(bench: Bench, **attributes: Any) -> Nscc:
    """The window control of a new connected QP of `a`."""
    cc = bench.pair(attributes)[0].requester.cc
    assert isinstance(cc, Nscc)
    return cc


def test_a_profile_is_chosen_per_qp_and_counts_for_qps_to_come() -> None:
    bench = Bench(nscc={"max_cwnd": 500_000})
    bench.a.control.modify_cc_profile(7, "uet-1.0-nscc", max_cwnd=100_000)
    assert congestion(bench, cc_profile_id=7).window_bytes == 100_000
    assert congestion(bench).window_bytes == 500_000
    before = congestion(bench, cc_profile_id=7)
    bench.a.control.modify_cc_profile(7, "uet-1.0-nscc", max_cwnd=200_000)
    assert before.window_bytes == 100_000
    assert congestion(bench, cc_profile_id=7).window_bytes == 200_000


def test_no_algorithm_is_no_congestion_control() -> None:
    bench = Bench()
    bench.a.control.modify_cc_profile(1, None)
    qp = bench.a.create_qp(bench.cq_a, cc_profile_id=1)
    qp.connect(bench.qp_b.info(), bench.now_ns)
    window = qp.requester.cc.window_bytes
    for _ in range(1000):
        qp.requester.cc.on_trim(bench.now_ns, 4096, 0)
    assert qp.requester.cc.window_bytes == window


def test_a_profile_that_nobody_made_is_refused() -> None:
    bench = Bench()
    bench.a.control.modify_cc_profile(7, "uet-1.0-nscc")
    with pytest.raises(VerbError, match="no congestion-control profile 8; present: 0, 7"):
        bench.a.create_qp(bench.cq_a, cc_profile_id=8)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"etta": 1.0}, "NSCC has no parameter 'etta'; valid: disable_qa, adjust_bytes_threshold"),
        ({"gamma": 1.5}, "NSCC's gamma is 1.5; it must be from 0.0 to 1.0"),
        ({"qa_gate": 2.5}, "NSCC's qa_gate is 2.5; it must be an integer"),
        ({"disable_qa": 1}, "NSCC's disable_qa is 1; it must be true or false"),
        ({"max_cwnd": 1 << 32}, "NSCC's max_cwnd is 4294967296; it must be from 1 to 4294967295"),
        ({"fi": "much"}, "NSCC's fi is 'much'; it must be a number"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused_by_name(config: dict[str, Any], words: str) -> None:
    bench = Bench()
    with pytest.raises(ConfigError, match=re.escape(words)):
        bench.a.control.modify_cc_profile(7, "uet-1.0-nscc", **config)
    with pytest.raises(ConfigError, match=re.escape(words)):
        Endpoint(bench.a.profile, rng=bench.a.rng, nscc=config)
    with pytest.raises(ConfigError, match="no congestion control 'x'; valid: nscc, fixed_window"):
        bench.a.control.modify_cc_profile(7, "x")


def test_settings_take_an_object_for_nscc_and_nothing_else() -> None:
    with pytest.raises(ConfigError, match="nscc is 3; it must be an object"):
        Bench(nscc=3)


def test_the_round_trip_of_a_neighbour_makes_its_window() -> None:
    bench = Bench()
    rows = [(name, row) for host in (0, 1) for name, row in profile_data(host)["destinations"].items()]
    near = Bench(changes={"destinations": {name: {**row, "base_rtt_ns": bench.base_rtt_ns // 2} for name, row in rows}})
    assert near.qp_a.requester.cc.window_bytes * 2 == bench.qp_a.requester.cc.window_bytes


@pytest.mark.skipif(FORM.compiled, reason="a method of a compiled class cannot be replaced")
def test_acknowledgements_of_retransmissions_reach_the_window_control(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 5 % loss most bytes are acknowledged by SACKs that a retransmission caused: they count all the same."""
    fed: list[tuple[int, int | None]] = []
    original = Nscc.on_ack

    def watch(cc: Nscc, now_ns: int, acked: int, rtt_ns: int | None, marked: bool, inflight: int) -> None:
        fed.append((acked, rtt_ns))
        original(cc, now_ns, acked, rtt_ns, marked, inflight)

    monkeypatch.setattr(Nscc, "on_ack", watch)
    wire = Wire(seed=7)
    flow = Flow(wire, size=1 << 20)
    wire.disturb(loss=0.05)
    flow.post(60_000, times=60)
    flow.finish(4000)
    assert sum(acked for acked, _ in fed) == flow.qp.requester.acked_bytes == 60 * 60_000
    assert sum(acked for acked, rtt_ns in fed if rtt_ns is None) > 0.2 * 60 * 60_000


QPS, ROUND_TRIPS = 64, 20
GBPS = 1_000_000_000


@dataclass
class Start:
    """The first round trips: packets trimmed, and the goodput as a share of what the planes carry."""

    trims: int
    goodput: float


def begin(senders: int, hint: dict[str, int]) -> tuple[Wire, list[Flow]]:
    """64 QPs to h0 from as many hosts. Every NIC gets the hint as its first, so its number is 1 everywhere."""
    wire = Wire(hosts=senders + 1, rate_bps=100 * GBPS, delay_ns=2_000, rcv_penalty=True)
    for transport in wire.transports.values():
        assert transport.control.create_qp_hint(**hint) == 1
    flows = [Flow(wire, f"h{1 + number % senders}", "h0", size=1 << 16, qp_hint=1) for number in range(QPS)]
    return wire, flows


def start(senders: int, hint: dict[str, int]) -> Start:
    wire, flows = begin(senders, hint)
    for flow in flows:
        flow.keep_posted(1 << 16, 64, 10_000 * wire.base_rtt_ns)
    wire.run(ROUND_TRIPS * wire.base_rtt_ns)
    received = sum(flow.remote.responder.received_bytes for flow in flows)
    return Start(
        trims=sum(link.trimmed for link in wire.links.values()),
        goodput=received / (4 * 100 * GBPS * wire.now_ns / 8e9 * 4096 / 4234),
    )


ONE_SENDER = {"num_qps_per_peer": QPS}
EIGHT_SENDERS = {"num_qps_per_peer": QPS // 8, "num_remote_recv_peers": QPS}


@pytest.mark.parametrize(("senders", "hint"), [(1, ONE_SENDER), (8, EIGHT_SENDERS)])
def test_each_qp_begins_with_its_share_of_the_first_window(senders: int, hint: dict[str, int]) -> None:
    wire, flows = begin(senders, hint)
    _, alone = begin(senders, {})
    whole = alone[0].qp.requester.cc.window_bytes
    assert whole == pytest.approx(1.5 * 4 * 100 * GBPS * wire.base_rtt_ns / 8e9, rel=0.01)
    for flow in flows:
        assert flow.qp.requester.cc.window_bytes == max(whole // QPS, 4096)


def test_hints_keep_an_incast_of_64_queue_pairs_from_being_trimmed() -> None:
    with_hints, without = start(8, EIGHT_SENDERS), start(8, {})
    assert with_hints.trims < without.trims / 5
    assert with_hints.goodput > 0.9 * without.goodput


@pytest.mark.parametrize(
    ("given", "sharers"),
    [
        ({}, 1),
        ({"num_qps_per_peer": 4}, 4),
        ({"num_qps_per_peer": 4, "num_send_peers": 3}, 12),
        ({"num_qps_per_peer": 2, "num_send_peers": 3, "num_remote_recv_peers": 5}, 6),
        ({"num_remote_recv_peers": 7}, 7),
    ],
)
def test_the_busier_of_the_two_lines_counts(given: dict[str, int], sharers: int) -> None:
    assert QpHint(**given).sharers == sharers


def test_hints_are_made_queried_modified_and_destroyed() -> None:
    bench = Bench()
    nic = bench.a
    number = nic.control.create_qp_hint(num_qps_per_peer=4)
    nic.control.modify_qp_hint(number, num_send_peers=3)
    assert nic.control.query_qp_hint(number) == QpHint(4, 3, 1)
    qp = nic.create_qp(bench.cq_a, qp_hint=number)
    with pytest.raises(BusyError, match=f"hint {number} is in use by QPs"):
        nic.control.destroy_qp_hint(number)
    nic.destroy_qp(qp, 0)
    nic.control.destroy_qp_hint(number)
    with pytest.raises(VerbError, match=f"no QP hint {number}; present: 0 "):
        nic.control.query_qp_hint(number)


def test_a_nic_has_room_for_4096_hints() -> None:
    hints = QpHints()
    numbers = [hints.create({}) for _ in range(4096)]
    with pytest.raises(QueueFull, match="4096 QP hints; destroy one first"):
        hints.create({})
    hints.destroy(numbers[7])
    assert hints.create({}) not in numbers


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"num_qps": 3}, "no attribute 'num_qps'; valid: num_qps_per_peer, num_send_peers, num_remote_recv_peers"),
        ({"num_qps_per_peer": 0}, "num_qps_per_peer is 0; it must be an integer from 1 to 2147483647"),
        ({"num_send_peers": "4"}, "num_send_peers is '4'; it must be an integer"),
    ],
)
def test_a_hint_that_cannot_be_is_refused_by_name(given: dict[str, int], words: str) -> None:
    with pytest.raises(VerbError, match=words):
        Bench().a.control.create_qp_hint(**given)
