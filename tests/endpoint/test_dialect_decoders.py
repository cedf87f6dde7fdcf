"""The Scapy layers and the Wireshark dissector read what the transport sends in every dialect, with the same setting.

The frames come from NICs that speak the dialect; what they carry is known from outside: the EV of the profile, the port
that is down, the operation that was asked for.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("scapy", reason="needs the optional package scapy")

from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from endpoint import scapy as layers
from endpoint.nic import dialect as dialects
from endpoint.nic import wire
from endpoint.nic.config import ConfigError
from endpoint.nic.wire import Opcode
from tests.helpers.dissector import build, dissected, number, tshark
from tests.helpers.transport.bench import Bench

OTHERS = ["", *(f"{name}={value}" for name, values in dialects.CHOICES.items() for value in values[1:])]
OTHERS.append("ev_halves=high-in-port,ev_label=outer,bth_order=m-se,eeth_op=5:4,port_mask=bit-1,port_status=sack")
EV = 0x0001C003
GOOD, ABSENT = 1, 4  # of the field `mrc.icrc.status`

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark on PATH")


@pytest.fixture(params=OTHERS, ids=lambda text: text or "default")
def dialect(request: pytest.FixtureRequest) -> Iterator[str]:
    text: str = request.param
    layers.use_dialect(text)
    yield text
    layers.use_dialect()


def spoken(dialect: str) -> dict[str, bytes]:
    """A write on EV 0x1c003, a SACK, an EV probe's request and response, and news that port 1 of two is down."""
    bench = Bench(planes=2, evs_per_plane=1, changes={"ev_first": 0xC003}, dialect=dialect)
    bench.post(2)
    writes = bench.writes()
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
    told: Packet = seen["ports"][layers.PortStates if "sack" in dialect else layers.Erth]
    assert told.ports() == [2]
    assert (layers.PortStates in seen["sack"]) == ("sack" in dialect)
    for name, frame in frames.items():
        assert bytes(seen[name]) == frame
        icrc = seen[name][layers.Mrc].icrc
        order = ">I" if "mrc-client" in dialect else "<I"
        assert icrc == (None if "absent" in dialect else struct.unpack(order, frame[-4:])[0])


def test_scapy_crafts_what_the_transport_would_send(dialect: str) -> None:
    sent = Ether(spoken(dialect)["write"])
    outer, inner = sent.payload, sent.payload.payload
    made = layers.encapsulate(outer.dst, inner.src, inner.dst, ev=EV, dscp=10, ecn=2, outer_src=outer.src)
    made[UDP].len = sent[UDP].len
    for packet in (made, made.payload.payload):
        del packet.plen
    sizes = [(packet, len(sent) - header) for packet, header in ((made.payload, 54), (made.payload.payload, 94))]
    for packet, size in sizes:
        packet.plen = size
    assert bytes(made)[14:] == bytes(sent)[14 : len(bytes(made))]


@pytest.mark.parametrize(("text", "byte"), [("", 0x80), ("bth_order=m-se", 0x40)])
def test_scapy_has_the_solicited_bit_where_the_dialect_has_it(text: str, byte: int) -> None:
    layers.use_dialect(text)
    try:
        packet = Ether(build(wire.Bth(0xD1, 1, 1), wire.Aeth(0x1F, 1).pack()))
        packet[layers.Mrc].se = 1
        assert bytes(packet)[103] == byte
    finally:
        layers.use_dialect()


def test_scapy_refuses_a_dialect_that_is_none_and_keeps_the_one_it_has() -> None:
    with pytest.raises(ConfigError, match="eeth_op is '1:0'; valid: 3:2, 5:4"):
        layers.use_dialect("eeth_op=1:0")
    assert layers.use_dialect().text() == ""


@pytest.mark.parametrize(("text", "tick_ns"), [("", None), ("tsr_1=1us", 1000)])
def test_scapy_says_how_long_a_tick_is(text: str, tick_ns: int | None) -> None:
    layers.use_dialect(text)
    try:
        assert layers.Tseth(tsr=0).tick_ns() == 128
        assert layers.Tseth(tsr=1).tick_ns() == tick_ns
    finally:
        layers.use_dialect()


# --- Wireshark --------------------------------------------------------------------------------------------------------


@needs_tshark
@pytest.mark.parametrize("text", OTHERS, ids=lambda text: text or "default")
def test_wireshark_reads_ev_operation_and_ports_with_the_same_setting(tmp_path: Path, text: str) -> None:
    frames = spoken(text)
    shown = dissected(tmp_path, *frames.values(), options=("-o", f"mrc.dialect:{text}"))
    values = dict(zip(frames, shown, strict=True))
    assert number(values["write"], "mrc.ev") == EV
    assert number(values["request"], "mrc.endpoint.op") == 1
    assert number(values["response"], "mrc.endpoint.response_op") == 1
    assert values["response"]["mrc.endpoint.reachable_port"] == ["1", "2"]
    assert values["ports"]["mrc.endpoint.reachable_port"] == ["2"]
    assert ("mrc.sack.port_status_mask" in values["sack"]) == ("sack" in text)
    for one in shown:
        assert number(one, "mrc.icrc.status") == (ABSENT if "absent" in text else GOOD)
        assert "mrc.dialect.bad" not in json.dumps(one)


@needs_tshark
@pytest.mark.parametrize(("text", "se", "m"), [("", True, False), ("bth_order=m-se", False, True)])
def test_wireshark_names_the_upper_bits_of_bth_byte_1_by_the_dialect(
    tmp_path: Path, text: str, se: bool, m: bool
) -> None:
    frame = build(wire.Bth(0xD1, 1, 1, solicited=True), wire.Aeth(0x1F, 1).pack())  # bit 7
    (values,) = dissected(tmp_path, frame, options=("-o", f"mrc.dialect:{text}"))
    assert [values[f"mrc.{bit}"][0] in ("1", "True") for bit in ("se", "m")] == [se, m]


@needs_tshark
@pytest.mark.parametrize(("text", "tick"), [("", "the sender's own"), ("tsr_1=1us", "1 us")])
def test_wireshark_says_how_long_a_tick_is(tmp_path: Path, text: str, tick: str) -> None:
    write = wire.Meth(0, 1).pack() + wire.Tseth(5, tsr=1).pack() + wire.Reth(1, 2, 4).pack() + b"abcd"
    frame = build(wire.Bth(0xCA, 1, 1, wire.TIMESTAMP), write)
    assert f"Timestamp resolution: {tick} (1)" in tshark(tmp_path, [frame], "-V", "-o", f"mrc.dialect:{text}")


@needs_tshark
def test_wireshark_shows_on_every_packet_that_its_dialect_is_none(tmp_path: Path) -> None:
    frame = build(wire.Bth(0xD1, 1, 1), wire.Aeth(0x1F, 1).pack())
    shown = tshark(tmp_path, [frame], "-V", "-o", "mrc.dialect:eeth_op=4:3")
    assert 'mrc.dialect: "eeth_op=4:3" is none of the valid choices of eeth_op: 3:2, 5:4' in shown
