"""The two readings of the specification: their bytes by hand, transfers in each, and hosts that disagree.

The expected bytes are worked out from the layouts as each source reads them (docs/reference/dialects.md), not from our
codecs.
"""

from dataclasses import replace

import pytest

from benchmarks.rig.profiles import profile as profile_data
from endpoint import factory, profile as profiles
from endpoint.nic import wire
from endpoint.nic.attributes import VerbError
from endpoint.nic.config import ConfigError
from endpoint.nic.wire import Opcode
from endpoint.transport import QPState
from tests.helpers.transport import Bench, Flow, Packet, Wire

ETHERNET, IPV6, UDP, BTH = 14, 40, 8, 12
OUTER, INNER = ETHERNET, ETHERNET + IPV6
SOURCE_PORT = slice(ETHERNET + 2 * IPV6, ETHERNET + 2 * IPV6 + 2)
UDP_PORT = slice(SOURCE_PORT.stop, SOURCE_PORT.stop + 2)
EXTENSION = ETHERNET + 2 * IPV6 + UDP + BTH
DIALECTS = ("default", "mrc-client")


# --- the bytes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dialect", "label", "port"), [("default", 0x00001, "12b7"), ("mrc-client", 0x1C003, "136b")])
def test_ev_1c003_and_the_udp_port_are_where_the_dialect_has_them(dialect: str, label: int, port: str) -> None:
    bench = Bench(planes=2, evs_per_plane=1, changes={"ev_first": 0xC003}, dialect=dialect)
    bench.post(2)
    (frame,) = [packet.frame for packet in bench.writes() if packet.port == 2]
    assert frame[SOURCE_PORT].hex() == "c003"
    assert frame[UDP_PORT].hex() == port
    for at in (OUTER, INNER):
        assert int.from_bytes(frame[at : at + 4], "big") & 0xFFFFF == label


def test_an_ev_of_more_than_20_bits_is_refused_where_packets_carry_20() -> None:
    data = profile_data(0, planes=17, evs_per_plane=1)
    factory.make("mrc", profiles.parse(data), 1, {}, 0)
    with pytest.raises(ConfigError, match="dialect mrc-client carries EVs of 20 bits, and h0 has EV 0x100000"):
        factory.make("mrc", profiles.parse(data), 1, {"dialect": "mrc-client"}, 0)


def test_payload_is_not_counted_where_a_frame_without_it_could_not_be_known() -> None:
    with pytest.raises(factory.TransportError, match="payload must be real in the dialect mrc-client"):
        factory.make("mrc", profiles.parse(profile_data(0)), 1, {"dialect": "mrc-client"}, 0, counted=True)


def test_se_and_m_are_the_upper_bits_of_bth_byte_1() -> None:
    assert wire.Bth(0xCA, 1, 1, solicited=True).pack()[1] == 0x80
    assert wire.Bth(0xCA, 1, 1, migrated=True, pad=3).pack()[1] == 0x40 | 0x30


@pytest.mark.parametrize(("dialect", "byte"), [("default", 0b0100), ("mrc-client", 0b01_0000)])
def test_the_operation_of_an_ev_probes_response_is_in_the_dialects_bits(dialect: str, byte: int) -> None:
    bench = Bench(dialect=dialect)
    route = bench.qp_a.reverse.candidate()
    assert route is not None
    bench.qp_a.probe_ev(route)
    (request,) = bench.out(bench.a, Opcode.ENDPOINT_REQUEST)
    assert request.frame[EXTENSION + 1] == 1  # ERTH: undisputed
    bench.to_b(request)
    (response,) = bench.answers(Opcode.ENDPOINT_RESPONSE)
    assert response.frame[EXTENSION + 1] == byte


def test_ports_1_3_and_4_are_bits_0_2_and_3_of_a_port_status_mask() -> None:
    bench = Bench(planes=4)
    bench.a.port_changed(2, False, bench.now_ns)
    requests = bench.out(bench.a, Opcode.ENDPOINT_REQUEST)
    assert {packet.frame[EXTENSION + 4 : EXTENSION + 8].hex() for packet in requests} == {"0000000d"}


def test_a_timestamp_with_tsr_1_counts_our_own_ticks() -> None:
    bench = Bench(timestamps=True, timeout=15)  # 33.6 ms, and 16 bits of 128 ns are 8.4 ms
    (packet,) = bench.write()
    assert packet.frame[EXTENSION + 4 : EXTENSION + 8].hex() == f"{1_000_000 // (128 * 4):04x}8001"


@pytest.mark.parametrize("name", ["client", "eeth_op=5:4"])
def test_a_dialect_that_is_none_is_refused_with_the_valid_names(name: str) -> None:
    with pytest.raises(ConfigError, match=f"dialect must be one of default, mrc-client \\(got '{name}'\\)"):
        factory.make("mrc", profiles.parse(profile_data(0)), 1, {"dialect": name}, 0)


# --- two hosts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encapsulation", ["srv6", "none"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_two_hosts_of_one_dialect_write_and_lose_ports(dialect: str, encapsulation: str) -> None:
    """Writes, with a port of each host down for a while, until all have arrived."""
    wire_ = Wire(ev_first=0xC000, timestamps=True, dialect=dialect, profile_changes={"encapsulation": encapsulation})
    flow = Flow(wire_)
    trip_ns = wire_.base_rtt_ns
    for wait, host, up in ((5, "h0", False), (9, "h1", False), (40, "h0", True), (50, "h1", True)):
        port = 2 if host == "h0" else 3
        wire_.at(wait * trip_ns, lambda host=host, port=port, up=up: wire_.set_port(host, port, up))
    flow.keep_posted(50_000, 16, 60 * trip_ns)
    wire_.run(100 * trip_ns)
    wire_.run(1000 * trip_ns, stop=lambda: flow.finished)
    assert flow.done_bytes > 2_000_000
    flow.check()
    for host, peer in (("h0", "h1"), ("h1", "h0")):
        events = "\n".join(line for line in wire_.journal if f" {host} plane " in line)
        for state in ("down", "up"):  # each host has heard of the other's port
            assert f"'side': 'peer', 'peer': '{peer}', 'state': '{state}'" in events
    evs = wire_.transports["h0"].peers.named("h1").by_ev
    heard = [Packet(port, frame) for port, frame in wire_.heard["h0"]]
    echoed = {packet.seth.entropy for packet in heard if packet.opcode is Opcode.SACK}
    assert echoed
    assert echoed <= set(evs)


def test_a_host_of_another_dialect_is_refused() -> None:
    wire_ = Wire(host_settings={"h1": {"dialect": "mrc-client"}})
    here, there = wire_.transports["h0"], wire_.transports["h1"]
    qp, peer = here.create_qp(here.create_cq(8)), there.create_qp(there.create_cq(8))
    qp.modify(QPState.INIT, 0)
    with pytest.raises(
        VerbError, match=r"h1 and h0 must have the same setting 'dialect' \(got 'mrc-client' and 'default'\)"
    ):
        qp.modify(QPState.RTR, 0, peer=peer.info())
    assert qp.state is QPState.INIT
    qp.modify(QPState.RTR, 0, peer=replace(peer.info(), dialect=None))  # nothing was changed


@pytest.mark.parametrize("said", ["nonsense", "x" * 600, "", 5, b"default", ["default"]])
def test_any_other_statement_of_a_peer_is_refused(said) -> None:
    bench = Bench()
    qp = bench.a.create_qp(bench.cq_a)
    with pytest.raises(VerbError, match="must have the same setting 'dialect'") as refused:
        qp.connect(replace(bench.qp_b.info(), dialect=said), bench.now_ns)
    assert len(str(refused.value)) < 200


def test_answers_of_a_silent_peer_of_another_dialect_fail_the_integrity_check() -> None:
    wire_ = Wire(host_settings={"h1": {"dialect": "mrc-client"}})
    flow = Flow(wire_, silent=True)
    flow.post(50_000)
    wire_.kick("h0")
    wire_.run(20 * wire_.base_rtt_ns)
    flow.poll()
    assert wire_.transports["h0"].counters()["drops"]["icrc"] > 0
    assert not flow.statuses
