"""The Scapy layers and the Wireshark dissector read what the transport sends in either dialect, with the same setting.

The frames come from NICs that speak the dialect; what they carry is known from outside: the EV of the profile, the port
that is down, the operation that was asked for.
"""

import json
import shutil
import struct
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("scapy", reason="needs the optional package scapy")

from scapy.layers.l2 import Ether

from endpoint import scapy as layers
from endpoint.nic import wire
from endpoint.nic.config import ConfigError
from endpoint.nic.wire import Opcode
from tests.helpers.dissector import build, dissected, number, tshark
from tests.helpers.transport import Bench

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
    for name, frame in frames.items():
        assert bytes(seen[name]) == frame
        icrc = seen[name][layers.Mrc].icrc
        assert icrc == struct.unpack(">I" if dialect == "mrc-client" else "<I", frame[-4:])[0]


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
