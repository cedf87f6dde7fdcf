"""EV profiles: explicit and generated ones, their states, what queue pairs use of them, and what is refused."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from endpoint.mrc.paths.ev_profile import EvField, EvMode, ProfileState
from endpoint.mrc.paths.ev_state import EvState
from endpoint.nic.attributes import BusyError, VerbError
from endpoint.nic.wire import Opcode
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
