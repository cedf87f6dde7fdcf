"""Disputed readings of the specification: their bytes by hand, transfers in each, and mismatches that are told.

The expected bytes are worked out from the layouts as each source reads them (docs/reference/dialects.md), not from our
codecs.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.rig.profiles import profile as profile_data
from endpoint import factory
from endpoint import profile as profiles
from endpoint.nic import dialect as dialects
from endpoint.nic import wire
from endpoint.nic.attributes import VerbError
from endpoint.nic.config import ConfigError
from endpoint.nic.wire import Opcode
from endpoint.transport import QPState
from tests.helpers.transport.bench import Bench, Packet
from tests.helpers.transport.flows import Flow
from tests.helpers.transport.virtual_wire import Wire

OTHERS = [(name, value) for name, values in dialects.CHOICES.items() for value in values[1:]]
"""Every choice with each value that is not the default."""
READABLE = {("udp_port", "4791"), ("udp_port", "4971")}
"""Values that both ends understand whatever their own."""

ETHERNET, IPV6, UDP, BTH = 14, 40, 8, 12
OUTER_LABEL = slice(ETHERNET + 2, ETHERNET + 4)  # the low 16 bits of the flow label
INNER_LABEL = slice(ETHERNET + IPV6 + 2, ETHERNET + IPV6 + 4)
SOURCE_PORT = slice(ETHERNET + 2 * IPV6, ETHERNET + 2 * IPV6 + 2)
UDP_PORT = slice(SOURCE_PORT.stop, SOURCE_PORT.stop + 2)
EXTENSION = ETHERNET + 2 * IPV6 + UDP + BTH


# --- the bytes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "source_port", "inner", "outer"),
    [
        ("", "c003", "0001", "0001"),
        ("ev_halves=low-in-port", "c003", "0001", "0001"),
        ("ev_halves=high-in-port", "0001", "c003", "c003"),
        ("ev_halves=low-in-both", "c003", "c003", "c003"),
        ("ev_label=inner", "c003", "0001", "0000"),
        ("ev_label=outer", "c003", "0000", "0001"),
        ("ev_label=outer,ev_halves=high-in-port", "0001", "0000", "c003"),
    ],
)
def test_the_halves_of_ev_1c003_are_where_the_dialect_has_them(
    dialect: str, source_port: str, inner: str, outer: str
) -> None:
    bench = Bench(planes=2, evs_per_plane=1, changes={"ev_first": 0xC003}, dialect=dialect)
    bench.post(2)
    (frame,) = [packet.frame for packet in bench.writes() if packet.port == 2]
    assert frame[SOURCE_PORT].hex() == source_port
    assert frame[INNER_LABEL].hex() == inner
    assert frame[OUTER_LABEL].hex() == outer


def test_the_label_of_20_bits_has_the_ev_whole_and_larger_evs_are_refused() -> None:
    bench = Bench(planes=2, evs_per_plane=1, changes={"ev_first": 0xC003}, dialect="ev_halves=low-in-both")
    bench.post(2)
    (frame,) = [packet.frame for packet in bench.writes() if packet.port == 2]
    for at in (ETHERNET, ETHERNET + IPV6):
        assert int.from_bytes(frame[at : at + 4], "big") & 0xFFFFF == 0x1C003
    data = profile_data(0, planes=17, evs_per_plane=1)
    with pytest.raises(ConfigError, match="low-in-both carries EVs of 20 bits, and h0 has EV 0x100000"):
        factory.make("mrc", profiles.parse(data), 1, {"dialect": "ev_halves=low-in-both"}, 0)


def test_payload_is_not_counted_where_a_frame_without_it_could_not_be_known() -> None:
    for value in ("mrc-client", "absent"):
        with pytest.raises(factory.TransportError, match=f"payload must be real .* \\(got {value}\\)"):
            factory.make("mrc", profiles.parse(profile_data(0)), 1, {"dialect": f"icrc={value}"}, 0, counted=True)


@pytest.mark.parametrize(("value", "port"), [("profile", "12b7"), ("4791", "12b7"), ("4971", "136b")])
def test_the_udp_port_is_the_dialects(value: str, port: str) -> None:
    bench = Bench(dialect=f"udp_port={value}")
    bench.post()
    (packet,) = bench.writes()
    assert packet.frame[UDP_PORT].hex() == port


@pytest.mark.parametrize(("first", "solicited", "migrated"), [(False, 0x80, 0x40), (True, 0x40, 0x80)])
def test_se_and_m_are_the_upper_bits_of_bth_byte_1_in_either_order(first: bool, solicited: int, migrated: int) -> None:
    assert dialects.Dialect(bth_order="m-se" if first else "se-m").migrated_first is first
    for bth, byte in (
        (wire.Bth(0xCA, 1, 1, solicited=True), solicited),
        (wire.Bth(0xCA, 1, 1, migrated=True, pad=3), migrated | 0x30),
    ):
        packed = bth.pack(migrated_first=first)
        assert packed[1] == byte
        assert wire.Bth.unpack(packed, migrated_first=first) == bth


@pytest.mark.parametrize(("value", "byte"), [("3:2", 0b0100), ("5:4", 0b01_0000)])
def test_the_operation_of_an_ev_probes_response_is_in_the_dialects_bits(value: str, byte: int) -> None:
    bench = Bench(dialect=f"eeth_op={value}")
    route = bench.qp_a.reverse.candidate()
    assert route is not None
    bench.qp_a.probe_ev(route)
    (request,) = bench.out(bench.a, Opcode.ENDPOINT_REQUEST)
    assert request.frame[EXTENSION + 1] == 1  # ERTH: undisputed
    bench.to_b(request)
    (response,) = bench.answers(Opcode.ENDPOINT_RESPONSE)
    assert response.frame[EXTENSION + 1] == byte


@pytest.mark.parametrize(("value", "mask"), [("bit-0", "0000000d"), ("bit-1", "0000001a")])
def test_ports_1_3_and_4_are_bits_0_2_and_3_or_one_higher(value: str, mask: str) -> None:
    bench = Bench(planes=4, dialect=f"port_mask={value}")
    bench.a.port_changed(2, False, bench.now_ns)
    requests = bench.out(bench.a, Opcode.ENDPOINT_REQUEST)
    assert {packet.frame[EXTENSION + 4 : EXTENSION + 8].hex() for packet in requests} == {mask}


@pytest.mark.parametrize(("mask", "word"), [("bit-0", "0000000d"), ("bit-1", "0000001a")])
def test_port_states_in_sacks_are_a_word_behind_cc_state_and_no_operation_tells_them(mask: str, word: str) -> None:
    bench = Bench(planes=4, dialect=f"port_status=sack,port_mask={mask}")
    bench.a.port_changed(2, False, bench.now_ns)
    told = bench.out(bench.a)
    assert {packet.opcode for packet in told} == {Opcode.SACK}
    assert {packet.port for packet in told} == {1, 3, 4}
    for packet in told:
        assert len(packet.frame) == EXTENSION + 28 + 8 + 4 + 4  # SETH, CC_STATE, the word, ICRC
        assert packet.frame[-8:-4].hex() == word


@pytest.mark.parametrize(("value", "ticks"), [("own", 1_000_000 // (128 * 4)), ("1us", 1_000)])
def test_a_timestamp_with_tsr_1_counts_our_own_ticks_or_microseconds(value: str, ticks: int) -> None:
    bench = Bench(timestamps=True, timeout=15, dialect=f"tsr_1={value}")  # 33.6 ms, and 16 bits of 128 ns are 8.4 ms
    bench.post()
    (packet,) = bench.writes()
    assert packet.frame[EXTENSION + 4 : EXTENSION + 8].hex() == f"{ticks:04x}8001"


# --- the setting ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("halves=low", "dialect has no choice 'halves'; valid: udp_port, ev_halves, .*, tsr_1"),
        ("eeth_op=4:3", "dialect: eeth_op is '4:3'; valid: 3:2, 5:4"),
        ("udp_port=5000", "dialect: udp_port is '5000'; valid: profile, 4791, 4971"),
        ("ev_halves", "dialect: 'ev_halves' is no NAME=VALUE, such as ev_halves=high-in-port"),
        ("eeth_op=3:2,eeth_op=5:4", "dialect: eeth_op is given twice: '3:2' and '5:4'"),
    ],
)
def test_a_dialect_that_is_none_is_refused_with_the_valid_choices(text: str, complaint: str) -> None:
    nic = profiles.parse(profile_data(0))
    with pytest.raises(ConfigError, match=complaint):
        factory.make("mrc", nic, 1, {"dialect": text}, 0)


def test_a_mask_that_begins_at_bit_1_has_no_room_for_port_32() -> None:
    data = profile_data(0, planes=1)
    data["ports"][0]["port"] = 32
    for path in data["destinations"]["h1"]["paths"]:
        path["port"] = 32
    factory.make("mrc", profiles.parse(data), 1, {}, 0)
    with pytest.raises(ConfigError, match="port_mask is 'bit-1', which has no bit for port 32"):
        factory.make("mrc", profiles.parse(data), 1, {"dialect": "port_mask=bit-1"}, 0)


@given(st.fixed_dictionaries({name: st.sampled_from(values) for name, values in dialects.CHOICES.items()}))
def test_every_dialect_is_written_as_it_is_read(values: dict[str, str]) -> None:
    made = dialects.Dialect(**values)
    assert dialects.parse(made.text()) == made
    assert dialects.differences(made.statement(4791), made.statement(4791)) == []
    for ports in (0b1, 0b1101, 0x7FFFFFFF):
        assert made.mask_from_wire(made.mask_to_wire(ports)) == ports


def test_the_first_value_of_each_choice_is_the_default() -> None:
    assert dialects.parse("") == dialects.Dialect(**{name: values[0] for name, values in dialects.CHOICES.items()})
    assert dialects.DEFAULT.text() == ""


# --- transfers --------------------------------------------------------------------------------------------------------


def told(wire_: Wire, host: str) -> set[tuple[str, str, str, str]]:
    """(choice, ours, theirs, how) of every mismatch that the host has reported."""
    events = [line.split(" ", 3) for line in wire_.journal]
    found = [eval(fields) for _, who, kind, fields in events if who == host and kind == "dialect"]
    return {(row["choice"], row["ours"], row["theirs"], row["how"]) for row in found}


def counted(wire_: Wire, host: str) -> dict[str, int]:
    drops = wire_.transports[host].counters()["drops"]
    return {name: count for name, count in drops.items() if name.startswith("dialect_")}


def transfer(wire_: Wire, flow: Flow) -> None:
    """Writes, with a port of each host down for a while, until all have arrived."""
    trip_ns = wire_.base_rtt_ns
    for wait, host, up in ((5, "h0", False), (9, "h1", False), (40, "h0", True), (50, "h1", True)):
        port = 2 if host == "h0" else 3
        wire_.at(wait * trip_ns, lambda host=host, port=port, up=up: wire_.set_port(host, port, up))
    flow.keep_posted(50_000, 16, 60 * trip_ns)
    wire_.run(100 * trip_ns)
    wire_.run(1000 * trip_ns, stop=lambda: flow.finished)
    assert flow.done_bytes > 2_000_000
    flow.check()


@pytest.mark.parametrize("encapsulation", ["srv6", "none"])
@pytest.mark.parametrize(("choice", "value"), OTHERS)
def test_two_hosts_of_one_dialect_write_lose_ports_and_report_nothing(
    choice: str, value: str, encapsulation: str
) -> None:
    wire_ = Wire(
        ev_first=0xC000, timestamps=True, dialect=f"{choice}={value}", profile_changes={"encapsulation": encapsulation}
    )
    flow = Flow(wire_)
    transfer(wire_, flow)
    for host, peer in (("h0", "h1"), ("h1", "h0")):
        assert told(wire_, host) == set()
        assert counted(wire_, host) == {}
        events = "\n".join(line for line in wire_.journal if f" {host} plane " in line)
        for state in ("down", "up"):  # each host has heard of the other's port
            assert f"'side': 'peer', 'peer': '{peer}', 'state': '{state}'" in events
    evs = wire_.transports["h0"].peers.named("h1").by_ev
    heard = [Packet(port, frame) for port, frame in wire_.heard["h0"]]
    echoed = {packet.seth.entropy for packet in heard if packet.opcode is Opcode.SACK}
    assert echoed
    assert echoed <= set(evs)


# --- mismatches that the hosts state ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("choice", "value"), OTHERS)
def test_a_host_of_another_dialect_is_refused_by_the_choice_that_differs(choice: str, value: str) -> None:
    wire_ = Wire(host_settings={"h1": {"dialect": f"{choice}={value}"}})
    here, there = wire_.transports["h0"], wire_.transports["h1"]
    qp, peer = here.create_qp(here.create_cq(8)), there.create_qp(there.create_cq(8))
    default = "4791" if choice == "udp_port" else dialects.CHOICES[choice][0]
    if (choice, value) in READABLE:
        qp.connect(peer.info(), 0)
    else:
        qp.modify(QPState.INIT, 0)
        with pytest.raises(
            VerbError,
            match=f"h1 speaks another dialect of MRC than h0: {choice} is '{value}' there and '{default}' here",
        ):
            qp.modify(QPState.RTR, 0, peer=peer.info())
        assert qp.state is QPState.INIT
        qp.modify(QPState.RTR, 0, peer=replace(peer.info(), dialect=None))  # nothing was changed
    wire_.run(0)
    expected = {(choice, default, value, "stated")} if value != default else set()
    assert told(wire_, "h0") == expected
    assert counted(wire_, "h0") == ({f"dialect_{choice}": 1} if expected else {})


def test_a_udp_port_that_is_not_accepted_is_refused() -> None:
    bench = Bench()
    qp = bench.a.create_qp(bench.cq_a)
    foreign = replace(bench.qp_b.info(), dialect="udp_port=5000")
    with pytest.raises(VerbError, match="udp_port is '5000' there and '4791' here"):
        qp.connect(foreign, bench.now_ns)


@pytest.mark.parametrize("statement", ["nonsense", "x" * 600, ",=", "=,="])
def test_a_statement_that_is_none_is_refused_or_ignored_and_never_raises_anything_else(statement: str) -> None:
    bench = Bench()
    qp = bench.a.create_qp(bench.cq_a)
    with contextlib.suppress(VerbError):
        qp.connect(replace(bench.qp_b.info(), dialect=statement), bench.now_ns)
    assert qp.state in (QPState.INIT, QPState.RTS)


@pytest.mark.parametrize("statement", [5, b"eeth_op=5:4", ["eeth_op=5:4"]])
def test_a_statement_that_is_no_text_is_refused(statement: Any) -> None:
    bench = Bench()
    qp = bench.a.create_qp(bench.cq_a)
    with pytest.raises(VerbError, match=r"the peer's dialect is .*; it must be a text, or None"):
        qp.connect(replace(bench.qp_b.info(), dialect=statement), bench.now_ns)


# --- mismatches that only bytes show ----------------------------------------------------------------------------------

SEEN_BY_BOTH = [
    ("udp_port", "4971"),
    ("ev_halves", "high-in-port"),
    ("eeth_op", "5:4"),
    ("port_mask", "bit-1"),
    ("port_status", "sack"),
]


def strangers(theirs: str, ours: str = "") -> tuple[Wire, Flow]:
    """h1 speaks another dialect than h0, and neither states its own."""
    wire_ = Wire(ev_first=0xC000, host_settings={"h0": {"dialect": ours}, "h1": {"dialect": theirs}})
    return wire_, Flow(wire_, silent=True)


@pytest.mark.parametrize(("choice", "value"), SEEN_BY_BOTH)
def test_a_silent_peer_of_another_dialect_is_found_out_by_its_bytes_on_both_sides(choice: str, value: str) -> None:
    wire_, flow = strangers(f"{choice}={value}")
    transfer(wire_, flow)
    back = Flow(wire_, "h1", "h0", seed=8, silent=True)
    back.keep_posted(50_000, 4, wire_.now_ns + 10 * wire_.base_rtt_ns)
    wire_.run(wire_.now_ns + 20 * wire_.base_rtt_ns)
    back.check()
    default = "profile" if choice == "udp_port" else dialects.CHOICES[choice][0]
    other = "4791" if choice == "udp_port" else default
    assert told(wire_, "h0") == {(choice, default, value, "packet")}
    assert told(wire_, "h1") == {(choice, value, other, "packet")}
    for host in ("h0", "h1"):
        assert set(counted(wire_, host)) == {f"dialect_{choice}"}


def test_a_label_in_the_outer_header_alone_is_missed_by_whoever_reads_the_inner_one() -> None:
    wire_, flow = strangers("ev_label=outer")
    back = Flow(wire_, "h1", "h0", seed=8, silent=True)
    back.keep_posted(50_000, 4, 20 * wire_.base_rtt_ns)
    transfer(wire_, flow)
    assert told(wire_, "h0") == {("ev_label", "both", "outer", "packet")}
    assert told(wire_, "h1") == set()  # reads the outer label, which is there


def test_two_hosts_that_each_read_the_label_that_the_other_leaves_out_both_tell() -> None:
    wire_, flow = strangers("ev_label=outer", "ev_label=inner")
    transfer(wire_, flow)
    assert {row[:3] for row in told(wire_, "h0")} == {("ev_label", "inner", "outer")}
    assert {row[:3] for row in told(wire_, "h1")} <= {("ev_label", "outer", "inner"), ("ev_label", "outer", "both")}
    assert told(wire_, "h1")
