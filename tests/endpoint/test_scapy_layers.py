"""Scapy layers and `endpoint.nic.wire` build and read the same bytes; both are made of one table of headers."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("scapy", reason="needs the optional package scapy")

from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from endpoint import scapy as layers
from endpoint.nic import frame, icrc, wire

U7, U8, U15, U16, U24, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (7, 8, 15, 16, 24, 32, 64))
S16 = st.integers(-(2**15), 2**15 - 1)
U1, U2, U4 = (st.integers(0, 2**bits - 1) for bits in (1, 2, 4))
DA, SRC, DST = "fcbb:bbbb:1000:2003:1001:3002::", "fd00::1", "fd00::2"
OUTER_SRC = "fd00:1::1"
MAC = "02:00:00:00:00:01"


def packed(address: str) -> bytes:
    from ipaddress import IPv6Address

    return IPv6Address(address).packed


def ours(header: wire.Bth, extension: bytes, ev: int, traffic_class: int = 0x2A) -> bytes:
    """The frame as the core builds it."""
    front = frame.headers(
        ether_dst=bytes(6),
        ether_src=bytes(5) + b"\1",
        outer=(packed(OUTER_SRC), packed(DA)),
        src=packed(SRC),
        dst=packed(DST),
        traffic_class=traffic_class,
        ev=ev,
        udp_dport=4791,
        length=wire.BTH_BYTES + len(extension) + icrc.SIZE,
    )
    return frame.seal(front, header.pack() + extension)


def theirs(bth: layers.Mrc, extension: Packet, ev: int) -> bytes:
    """The frame as Scapy builds it."""
    head = layers.encapsulate(DA, SRC, DST, ev=ev, dscp=10, ecn=2, outer_src=OUTER_SRC)
    return bytes(head / bth / extension)


# Per extension header: a strategy for its fields, and how each side makes it from them.
Case = tuple[int, st.SearchStrategy[dict[str, int]], Callable[..., bytes], Callable[..., Packet]]

CASES: dict[str, Case] = {
    "aeth": (
        0xD1,
        st.fixed_dictionaries({"syndrome": U8, "msn": U24}),
        lambda **f: wire.Aeth(**f).pack(),
        lambda **f: layers.Aeth(**f),
    ),
    "sack": (
        0xDC,
        st.fixed_dictionaries(
            {
                "cack": U24, "offset": S16, "bitmap": U64, "ev": U32, "mark": U2, "pr": U1, "ack": S16, "flags": U4,
                "mpr": U8, "spdcid": U16, "dpdcid": U16, "type": U4, "stamp": U16, "ooo": U15, "restore": U1,
                "pen": U7, "rcvd": U24,
            }
        ),
        lambda **f: (
            wire.Seth(
                cack_psn=f["cack"],
                sack_offset=f["offset"],
                bitmap=f["bitmap"],
                entropy=f["ev"],
                mark=f["mark"],
                probe_response=bool(f["pr"]),
                ack_psn_offset=f["ack"],
                cc_type=0,
                cc_flags=f["flags"],
                mpr=f["mpr"],
                spdcid=f["spdcid"],
                dpdcid=f["dpdcid"],
                pds_type=f["type"],
            ).pack()
            + wire.CcState(f["stamp"], f["ooo"], bool(f["restore"]), f["pen"], f["rcvd"]).pack()
        ),
        lambda **f: (
            layers.Seth(
                cack_psn=f["cack"],
                sack_offset=f["offset"],
                sack_bitmap=f["bitmap"],
                entropy=f["ev"],
                m=f["mark"],
                pr=f["pr"],
                ack_psn_offset=f["ack"],
                cc_flags=f["flags"],
                mpr=f["mpr"],
                spdcid=f["spdcid"],
                dpdcid=f["dpdcid"],
                type=f["type"],
            )
            / layers.CcState(
                tx_timestamp=f["stamp"],
                ooo_count=f["ooo"],
                restore_cwnd=f["restore"],
                rcv_cwnd_pen=f["pen"],
                rcvd_bytes=f["rcvd"],
            )
        ),
    ),
    "nack": (
        0xDD,
        st.fixed_dictionaries(
            {
                "reason": st.sampled_from(sorted(layers.NACK_REASONS)),
                "nack_psn": U24,
                "entropy": U32,
                "tx_timestamp": U16,
                "vendor": U8,
                "spdcid": U16,
                "dpdcid": U16,
                "cc_flags": U4,
            }
        ),
        lambda **f: wire.Neth(**f).pack(),
        lambda **f: layers.Neth(**{("vendor_info" if name == "vendor" else name): f[name] for name in f}),
    ),
    "probe": (
        0xDE,
        st.fixed_dictionaries(
            {"probe_id": U16, "tx_timestamp": U16, "tsr": U1, "ftype": U4, "vendor": U8, "spdcid": U16, "dpdcid": U16}
        ),
        lambda **f: wire.Peth(**f).pack(),
        lambda **f: layers.Peth(**{("vendor_info" if name == "vendor" else name): f[name] for name in f}),
    ),
    "request": (
        0xD8,
        st.fixed_dictionaries(
            {"op": U2, "port_status_mask": U32, "tx_timestamp": U16, "tsr": U1, "ftype": U4, "vendor": U8}
        ),
        lambda **f: wire.Erth(**f).pack(),
        lambda **f: layers.Erth(**{("vendor_info" if name == "vendor" else name): f[name] for name in f}),
    ),
    "response": (
        0xD9,
        st.fixed_dictionaries(
            {"op": U2, "port_status_mask": U32, "tx_timestamp": U16, "tsr": U1, "ftype": U4, "vendor": U8}
        ),
        lambda **f: wire.Eeth(**f).pack(),
        lambda **f: layers.Eeth(**{("vendor_info" if name == "vendor" else name): f[name] for name in f}),
    ),
}  # fmt: skip

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
    built = ours(core_bth, extension + body, ev)
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
    opcode, fields, mine, scapys = CASES[name]
    values = data.draw(fields)
    core_bth, scapy_bth = bth_pair(opcode, bth)
    built = ours(core_bth, mine(**values), ev)
    assert theirs(scapy_bth, scapys(**values), ev)[14:] == built[14:]
    seen = Ether(built)
    layer = seen[layers.Mrc].payload
    assert bytes(layer) == mine(**values)
    for field_name, value in scapys(**values).fields.items():
        assert getattr(layer, field_name) == value


def test_an_icrc_that_was_changed_is_kept_and_one_left_out_is_computed():
    built = bytearray(ours(wire.Bth(0xD1, 5, 6), wire.Aeth(0x1F, 9).pack(), 7))
    built[-1] ^= 0xFF
    seen = Ether(bytes(built))
    assert bytes(seen) == bytes(built)
    seen[layers.Mrc].icrc = None
    assert bytes(seen)[-1] == built[-1] ^ 0xFF


def test_a_trimmed_write_is_read_as_far_as_it_goes_and_has_no_icrc():
    write = wire.Meth(1, 2).pack() + wire.Reth(0x1000, 7, 4096).pack() + bytes(4096)
    whole = ours(wire.Bth(0xC7, 5, 6), write, 0x10007)
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
