"""The Wireshark dissector reads captures of what our own code sends; the truth is what was packed."""

from __future__ import annotations

import json
import shutil

import pytest

from endpoint.nic import wire
from tests.helpers.dissector import build, dissected, number, tshark

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark on PATH")


def trimmed(data: bytes, size: int) -> bytes:
    """As a switch does it: cut, and the outer payload length rewritten."""
    cut = bytearray(data[:size])
    cut[18:20] = (size - 54).to_bytes(2, "big")
    return bytes(cut)


def test_a_write_is_decoded_with_its_path_and_its_icrc_is_good(tmp_path):
    bth = wire.Bth(0xCB, 0x123, 77, wire.ACK_REQUEST | wire.TIMESTAMP | wire.RETRANSMISSION)
    extension = wire.Meth(3, 9).pack() + wire.Tseth(1234, 0).pack() + wire.Reth(0xABCDEF0123, 0x55, 8).pack()
    (values,) = dissected(tmp_path, build(bth, extension + wire.IMMEDIATE.pack(0xCAFE) + b"12345678"))
    assert number(values, "mrc.opcode") == 0xCB
    assert number(values, "mrc.dqpn") == 0x123
    assert number(values, "mrc.psn") == 77
    assert number(values, "mrc.ev") == 0x00010007
    assert [int(usid, 0) for usid in values["mrc.usid"]] == [0x1000, 0x2003, 0x1001, 0x3002]
    assert (number(values, "mrc.meth.rqmsn"), number(values, "mrc.meth.msn")) == (3, 9)
    assert number(values, "mrc.timestamp") == 1234
    assert number(values, "mrc.reth.va") == 0xABCDEF0123
    assert (number(values, "mrc.reth.rkey"), number(values, "mrc.reth.length")) == (0x55, 8)
    assert number(values, "mrc.immediate") == 0xCAFE
    assert values["mrc.payload"] == [":".join(f"{byte:02x}" for byte in b"12345678")]
    assert number(values, "mrc.icrc.status") == 1
    assert [values[f"mrc.{bit}"][0] in ("1", "True") for bit in ("a", "rtx", "ts", "se", "m")] == [
        True, True, True, False, False,
    ]  # fmt: skip


def test_every_control_packet_is_decoded(tmp_path):
    sack = wire.Seth(4, 1, 0b1110110, 0x20009, mark=1, mpr=8, ack_psn_offset=-2).pack()
    sack += wire.CcState(500, 3, True, 64, 1000).pack()
    frames = [
        build(wire.Bth(0xDC, 1, 4), sack),
        build(wire.Bth(0xDD, 1, 9), wire.Neth(2, 9, 0x30001, 77).pack()),
        build(wire.Bth(0xDE, 1, 10), wire.Peth(0x4242, 99).pack()),
        build(wire.Bth(0xD1, 1, 11), wire.Aeth(0x1F, 12).pack()),
        build(wire.Bth(0xD8, 2, 13), wire.Erth(0, 0b1011, 5).pack()),
        build(wire.Bth(0xD9, 2, 13), wire.Eeth(1, 0b1011, 6).pack()),
    ]
    seth, neth, peth, aeth, erth, eeth = dissected(tmp_path, *frames)
    assert {number(one, "mrc.icrc.status") for one in (seth, neth, peth, aeth, erth, eeth)} == {1}
    assert number(seth, "mrc.sack.cack_psn") == 4
    assert number(seth, "mrc.sack.offset") == 1
    assert [int(psn) for psn in seth["mrc.sack.received"]] == [6, 7, 9, 10, 11]
    assert (number(seth, "mrc.sack.m"), number(seth, "mrc.entropy"), number(seth, "mrc.sack.mpr")) == (1, 0x20009, 8)
    assert number(seth, "mrc.sack.ack_psn_offset") == -2
    assert (number(seth, "mrc.cc.ooo_count"), number(seth, "mrc.cc.rcv_cwnd_pen")) == (3, 64)
    assert number(seth, "mrc.cc.rcvd_bytes") == 1000
    assert (number(neth, "mrc.nack.reason"), number(neth, "mrc.nack.psn")) == (2, 9)
    assert number(neth, "mrc.entropy") == 0x30001
    assert (number(peth, "mrc.probe_id"), number(peth, "mrc.timestamp")) == (0x4242, 99)
    assert (number(aeth, "mrc.aeth.syndrome"), number(aeth, "mrc.aeth.msn")) == (0x1F, 12)
    assert (number(erth, "mrc.endpoint.op"), number(erth, "mrc.endpoint.port_status_mask")) == (0, 0b1011)
    assert (number(eeth, "mrc.endpoint.response_op"), number(eeth, "mrc.timestamp")) == (1, 6)


def test_a_wrong_icrc_is_told_and_can_be_filtered_for(tmp_path):
    good = build(wire.Bth(0xD1, 1, 11), wire.Aeth(0x1F, 12).pack())
    bad = bytearray(good)
    bad[-6] ^= 1
    shown = tshark(
        tmp_path, [good, bytes(bad), good], "-Y", "mrc.icrc.status == 0", "-T", "fields", "-e", "frame.number"
    )
    assert shown.split() == ["2"]


def test_a_trimmed_write_is_decoded_as_far_as_it_goes(tmp_path):
    write = wire.Meth(1, 2).pack() + wire.Reth(0x1000, 7, 4096).pack() + bytes(4096)
    whole = build(wire.Bth(0xC7, 5, 6), write)
    short, rewritten, not_rewritten = dissected(tmp_path, trimmed(whole, 122), trimmed(whole, 200), whole[:200])
    for values in (short, rewritten, not_rewritten):
        assert number(values, "mrc.psn") == 6
        assert values["mrc.trimmed"][0] in ("1", "True")
        assert number(values, "mrc.icrc.status") == 3
    assert "mrc.reth.va" not in short
    assert number(rewritten, "mrc.reth.va") == 0x1000


def test_one_line_a_packet_says_what_matters(tmp_path):
    sack = wire.Seth(4, 1, 0b1110110, 0x20009, mark=1).pack() + wire.CcState().pack()
    frames = [build(wire.Bth(0xDC, 0x11, 4), sack), build(wire.Bth(0xDD, 0x11, 9), wire.Neth(1, 9, 5).pack())]
    lines = tshark(tmp_path, frames).splitlines()
    assert "MRC" in lines[0]
    assert "SACK QP 0x11 PSN 4 cumulative 4, 5 above up to 11, SKIP_ONCE EV 0x20009" in lines[0]
    assert "NACK QP 0x11 PSN 9 TRIMMED PSN 9" in lines[1]


def test_packets_without_encapsulation_are_decoded_and_other_traffic_is_left_alone(tmp_path):
    plain = build(wire.Bth(0xD1, 1, 11), wire.Aeth(0x1F, 12).pack(), encapsulated=False)
    other = bytearray(build(wire.Bth(0xD1, 1, 11), wire.Aeth(0x1F, 12).pack()))
    other[96:98] = (53).to_bytes(2, "big")
    roce = bytearray(plain)
    roce[62] = 0x0A
    first, second, third = dissected(tmp_path, plain, bytes(other), bytes(roce))
    assert number(first, "mrc.psn") == 11
    assert number(first, "mrc.icrc.status") == 1
    assert "mrc.usid" not in first
    assert second == third == {}


def test_wiresharks_own_roce_dissector_reads_the_baseline_and_only_that(tmp_path):
    write = build(wire.Bth(0xCA, 1, 11), wire.Meth(1, 1).pack() + wire.Reth(1, 2, 3).pack() + b"abc\0", ev=0xC123)
    roce = bytearray(build(wire.Bth(0xD1, 1, 11), wire.Aeth(0x1F, 12).pack(), ev=0xC123))
    roce[102] = 0x11
    first, second = json.loads(tshark(tmp_path, [write, bytes(roce)], "-T", "json"))
    assert "mrc" in first["_source"]["layers"]
    assert "infiniband" not in first["_source"]["layers"]
    assert "infiniband" in second["_source"]["layers"]
    assert "mrc" not in second["_source"]["layers"]


def test_short_and_mangled_frames_make_no_lua_error(tmp_path):
    whole = build(wire.Bth(0xDC, 1, 4), wire.Seth(4, 1, 6, 9).pack() + wire.CcState().pack())
    frames = [whole[:size] for size in range(14, len(whole))]
    frames += [whole[:place] + b"\xff" + whole[place + 1 :] for place in range(14, len(whole))]
    assert "Lua Error" not in tshark(tmp_path, frames, "-V")
