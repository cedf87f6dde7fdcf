"""The layers for Scapy and Wireshark, by dialect: the same bytes as the codec's, also when they are mangled."""

import json
import shutil
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("scapy", reason="needs the optional package scapy")

from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from endpoint import scapy as layers
from endpoint.nic import wire
from endpoint.nic.config import ConfigError
from endpoint.nic.wire import Opcode
from tests.helpers.dissector import build, dissected, number, tshark
from tests.helpers.transport import Bench

U7, U8, U15, U16, U24, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (7, 8, 15, 16, 24, 32, 64))
S16 = st.integers(-(2**15), 2**15 - 1)
U1, U2, U4 = (st.integers(0, 2**bits - 1) for bits in (1, 2, 4))
DA, SRC, DST = "fcbb:bbbb:1000:2003:1001:3002::", "fd00::1", "fd00::2"
OUTER_SRC = "fd00:1::1"
MAC = "02:00:00:00:00:01"


def theirs(bth: layers.Mrc, extension: Packet, ev: int) -> bytes:
    """The frame as Scapy builds it."""
    head = layers.encapsulate(DA, SRC, DST, ev=ev, dscp=10, ecn=2, outer_src=OUTER_SRC)
    return bytes(head / bth / extension)


FEEDBACK = {"tx_timestamp": U16, "tsr": U1, "ftype": U4, "vendor": U8}
ENDPOINT = FEEDBACK | {"op": U2, "port_status_mask": U32}
Case = tuple[int, dict[str, Any], Callable[..., Any], Callable[..., Packet]]
CASES: dict[str, Case] = {
    "aeth": (0xD1, {"syndrome": U8, "msn": U24}, wire.Aeth, layers.Aeth),
    "nack": (
        0xDD,
        {
            "reason": st.sampled_from(sorted(layers.NACK_REASONS)), "nack_psn": U24, "entropy": U32,
            "tx_timestamp": U16, "vendor": U8, "spdcid": U16, "dpdcid": U16, "cc_flags": U4,
        },
        wire.Neth,
        layers.Neth,
    ),
    "probe": (0xDE, FEEDBACK | {"probe_id": U16, "spdcid": U16, "dpdcid": U16}, wire.Peth, layers.Peth),
    "request": (0xD8, ENDPOINT, wire.Erth, layers.Erth),
    "response": (0xD9, ENDPOINT, wire.Eeth, layers.Eeth),
    "sack": (
        0xDC,
        {
            "cack_psn": U24, "sack_offset": S16, "bitmap": U64, "entropy": U32, "mark": U2, "probe_response": U1,
            "ack_psn_offset": S16, "cc_flags": U4, "mpr": U8, "spdcid": U16, "dpdcid": U16,
            "pds_type": U4,
        },
        wire.Seth,
        layers.Seth,
    ),
}  # fmt: skip
"""Per extension header: its fields by the core's names, and its class on each side."""
SCAPYS = {"vendor": "vendor_info", "bitmap": "sack_bitmap", "mark": "m", "probe_response": "pr", "pds_type": "type"}
SCAPYS["rcvd_units"] = "rcvd_bytes"
STATE = {"tx_timestamp": U16, "ooo_count": U15, "restore_cwnd": U1, "rcv_cwnd_pen": U7, "rcvd_units": U24}


def drawn(data: st.DataObject, name: str) -> tuple[bytes, Packet]:
    """An extension with any values, as either side makes it. A SACK has a congestion-control state behind it."""
    _, fields, mine, scapys = CASES[name]

    def header(fields: dict[str, Any], mine: Callable[..., Any], scapys: Callable[..., Packet]) -> tuple[bytes, Packet]:
        values = {field: data.draw(strategy) for field, strategy in fields.items()}
        return mine(**values).pack(), scapys(**{SCAPYS.get(field, field): value for field, value in values.items()})

    core, scapy = header(fields, mine, scapys)
    if name == "sack":
        state, behind = header(STATE, wire.CcState, layers.CcState)
        core, scapy = core + state, scapy / behind
    return core, scapy


BTH = st.fixed_dictionaries(
    {"dqpn": U24, "psn": U24, "se": U1, "m": U1, "pkey": U16, "variant": U8, "a": U1, "rtx": U1}
)


def bth_pair(opcode: int, f: dict[str, Any], ts: int = 0, pad: int = 0) -> tuple[wire.Bth, layers.Mrc]:
    flags = f["a"] * wire.ACK_REQUEST | f["rtx"] * wire.RETRANSMISSION | ts * wire.TIMESTAMP
    mine = wire.Bth(opcode, f["dqpn"], f["psn"], flags, pad, bool(f["se"]), bool(f["m"]), f["pkey"], f["variant"])
    return mine, layers.Mrc(opcode=opcode, ts=ts, pad=pad, **f)


@pytest.mark.parametrize("opcode", sorted(wire.WRITES))
@given(data=st.data(), ev=U32, bth=BTH, ts=U1, payload=st.binary(max_size=300))
@settings(max_examples=40)
def test_both_build_and_read_the_same_bytes_for_every_write(opcode, data, ev, bth, ts, payload):
    rqmsn, msn, stamp, tsr = (data.draw(one) for one in (U16, U16, U16, U1))
    va, rkey, length, immediate = (data.draw(one) for one in (U64, U32, U32, U32))
    pad = -len(payload) % 4
    core_bth, scapy_bth = bth_pair(opcode, bth, ts, pad)
    extension = wire.Meth(rqmsn, msn).pack()
    scapys: Packet = layers.Meth(rqmsn=rqmsn, msn=msn)
    if ts:
        extension += wire.Tseth(stamp, tsr).pack()
        scapys /= layers.Tseth(tx_timestamp=stamp, tsr=tsr)
    extension += wire.Reth(va, rkey, length).pack()
    scapys /= layers.Reth(va=va, rkey=rkey, length=length)
    if opcode in wire.IMMEDIATES:
        extension += wire.IMMEDIATE.pack(immediate)
        scapys /= layers.ImmDt(immediate=immediate)
    body = payload + bytes(pad)
    built = build(core_bth, extension + body, ev=ev)
    assert theirs(scapy_bth, scapys / body, ev)[14:] == built[14:]

    seen = Ether(built)
    assert layers.entropy(seen) == ev
    assert seen[layers.Mrc].opcode == opcode
    assert (seen[layers.Meth].msn, seen[layers.Reth].va, seen[layers.Reth].rkey) == (msn, va, rkey)
    assert seen.haslayer(layers.Tseth) == bool(ts)
    assert seen.haslayer(layers.ImmDt) == (opcode in wire.IMMEDIATES)
    assert bytes(seen[Raw] if seen.haslayer(Raw) else b"") == body
    assert bytes(seen) == built  # and built again from what was read, the same


@pytest.mark.parametrize("name", CASES)
@given(data=st.data(), ev=U32, bth=BTH)
@settings(max_examples=60)
def test_both_build_and_read_the_same_bytes_for_every_control_packet(name, data, ev, bth):
    core, scapy = drawn(data, name)
    core_bth, scapy_bth = bth_pair(CASES[name][0], bth)
    built = build(core_bth, core, ev=ev)
    assert theirs(scapy_bth, scapy, ev)[14:] == built[14:]
    layer = Ether(built)[layers.Mrc].payload
    assert bytes(layer) == core
    for field_name, value in scapy.fields.items():
        assert getattr(layer, field_name) == value


def test_an_icrc_that_was_changed_is_kept_and_one_left_out_is_computed():
    built = bytearray(build(wire.Bth(0xD1, 5, 6), wire.Aeth(0x1F, 9).pack()))
    built[-1] ^= 0xFF
    seen = Ether(bytes(built))
    assert bytes(seen) == bytes(built)
    seen[layers.Mrc].icrc = None
    assert bytes(seen)[-1] == built[-1] ^ 0xFF


def test_a_trimmed_write_is_read_as_far_as_it_goes_and_has_no_icrc():
    write = wire.Meth(1, 2).pack() + wire.Reth(0x1000, 7, 4096).pack() + bytes(4096)
    whole = build(wire.Bth(0xC7, 5, 6), write)
    for size in (122, 128, 134, 200):
        seen = Ether(whole[:size])
        assert seen[layers.Mrc].icrc is None
        assert seen[layers.Mrc].psn == 6
        assert seen.haslayer(layers.Reth) == (size >= 134)
        assert bytes(seen) == whole[:size]


@given(st.binary(max_size=200), U8)
@settings(max_examples=200)
def test_any_bytes_behind_udp_are_dissected_without_an_exception(data, opcode):
    head = Ether(dst=MAC, src=MAC) / IPv6(src=SRC, dst=DST) / UDP(sport=1, dport=4791, chksum=0)
    seen = Ether(bytes(head / Raw(bytes([opcode]) + data)))
    seen.show(dump=True)
    assert seen.haslayer(UDP)


def test_a_sack_lists_what_arrived():
    sack = layers.Seth(cack_psn=4, sack_offset=1, sack_bitmap=0b1110110)  # PSN 0-11 sent, 5 and 8 lost
    assert sack.received() == [6, 7, 9, 10, 11]
    assert layers.Seth(cack_psn=0xFFFFFF, sack_offset=2, sack_bitmap=1).received() == [1]


def test_usids_of_an_address_are_listed_without_the_block_and_the_zeros():
    assert layers.usids(DA) == [0x1000, 0x2003, 0x1001, 0x3002]


def test_both_udp_ports_and_the_baseline_are_decoded():
    for port in layers.UDP_PORTS:
        head = IPv6(src=SRC, dst=DST) / UDP(sport=5, dport=port, chksum=0)
        packet = head / layers.Mrc(opcode="RC_WRITE_ONLY_IMM", dqpn=9) / layers.Reth(va=4) / layers.ImmDt(immediate=3)
        seen = IPv6(bytes(packet / b"data"))
        assert (seen[layers.Reth].va, seen[layers.ImmDt].immediate, seen[Raw].load) == (4, 3, b"data")


DIALECTS = ("default", "mrc-client")
EV = 0x0001C003
GOOD = 1  # of the field `mrc.icrc.status`

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark on PATH")


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> Iterator[str]:
    name: str = request.param
    layers.use_dialect(name)
    yield name
    layers.use_dialect()


def spoken(dialect: str) -> dict[str, bytes]:
    """A write on EV 0x1c003, a SACK, an EV probe's request and response, and news that port 1 of two is down."""
    bench = Bench(planes=2, evs_per_plane=1, changes={"ev_first": 0xC003}, dialect=dialect)
    writes = bench.write(2)
    bench.to_b(*writes)
    found = {
        "write": next(packet.frame for packet in writes if packet.port == 2),
        "sack": bench.answers(Opcode.SACK)[-1].frame,
    }
    (request,) = _probe(bench)
    bench.to_b(request)
    (response,) = bench.answers(Opcode.ENDPOINT_RESPONSE)
    found |= {"request": request.frame, "response": response.frame}
    bench.a.port_changed(1, False, bench.now_ns)
    found["ports"] = bench.out(bench.a)[0].frame
    return found


def _probe(bench: Bench) -> list[Any]:
    route = bench.qp_a.reverse.candidate()
    assert route is not None
    bench.qp_a.probe_ev(route)
    return bench.out(bench.a, Opcode.ENDPOINT_REQUEST)


# --- Scapy ------------------------------------------------------------------------------------------------------------


def test_scapy_reads_ev_operation_and_ports_and_builds_the_same_bytes(dialect: str) -> None:
    frames = spoken(dialect)
    seen = {name: Ether(frame) for name, frame in frames.items()}
    assert layers.entropy(seen["write"]) == EV
    assert (seen["request"][layers.Erth].op, seen["response"][layers.Eeth].op) == (1, 1)
    assert seen["response"][layers.Eeth].ports() == [1, 2]
    assert seen["ports"][layers.Erth].ports() == [2]
    for name, built in frames.items():
        assert bytes(seen[name]) == built
        check = seen[name][layers.Mrc].icrc
        assert check == struct.unpack(">I" if dialect == "mrc-client" else "<I", built[-4:])[0]


def test_scapy_refuses_a_dialect_that_is_none_and_keeps_the_one_it_has() -> None:
    with pytest.raises(ConfigError, match=r"dialect must be one of default, mrc-client \(got 'eeth_op=5:4'\)"):
        layers.use_dialect("eeth_op=5:4")
    assert layers.use_dialect().name == "default"


# --- Wireshark --------------------------------------------------------------------------------------------------------


@needs_tshark
@pytest.mark.parametrize("text", DIALECTS)
def test_wireshark_reads_ev_operation_and_ports_with_the_same_setting(tmp_path, text: str) -> None:
    frames = spoken(text)
    shown = dissected(tmp_path, *frames.values(), options=("-o", f"mrc.dialect:{text}"))
    values = dict(zip(frames, shown, strict=True))
    assert number(values["write"], "mrc.ev") == EV
    assert number(values["request"], "mrc.endpoint.op") == 1
    assert number(values["response"], "mrc.endpoint.response_op") == 1
    assert values["response"]["mrc.endpoint.reachable_port"] == ["1", "2"]
    assert values["ports"]["mrc.endpoint.reachable_port"] == ["2"]
    for one in shown:
        assert number(one, "mrc.icrc.status") == GOOD
        assert "mrc.dialect.bad" not in json.dumps(one)


@needs_tshark
@pytest.mark.parametrize(("text", "se", "m"), [("default", True, False), ("mrc-client", False, True)])
def test_wireshark_names_the_upper_bits_of_bth_byte_1_by_the_dialect(tmp_path, text, se, m) -> None:
    frame = build(wire.Bth(0xD1, 1, 1, solicited=True), wire.Aeth(0x1F, 1).pack())  # bit 7
    (values,) = dissected(tmp_path, frame, options=("-o", f"mrc.dialect:{text}"))
    assert [values[f"mrc.{bit}"][0] in ("1", "True") for bit in ("se", "m")] == [se, m]


@needs_tshark
def test_wireshark_shows_on_every_packet_that_its_dialect_is_none(tmp_path) -> None:
    frame = build(wire.Bth(0xD1, 1, 1), wire.Aeth(0x1F, 1).pack())
    shown = tshark(tmp_path, [frame], "-V", "-o", "mrc.dialect:client")
    assert 'mrc.dialect must be default or mrc-client (got "client")' in shown
