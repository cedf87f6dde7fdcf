"""Frames around MRC: the SRv6 encapsulation with its EV and its list of uSIDs."""

from __future__ import annotations

import struct
from ipaddress import IPv6Address

from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from endpoint.scapy import chosen
from endpoint.scapy.codes import UDP_PORTS


def encapsulate(
    da: str,
    src: str,
    dst: str,
    *,
    ev: int = 0,
    dscp: int = 10,
    ecn: int = 2,
    outer_src: str | None = None,
    udp_port: int | None = None,
    ether_dst: str = "02:00:00:00:00:01",
    ether_src: str = "02:00:00:00:00:02",
) -> Packet:
    """Ethernet, the outer IPv6 to the uSID list `da`, the inner IPv6 and UDP, with the EV striped over them.

    `udp_port` is the dialect's where none is given. The Ethernet addresses have defaults because Scapy would otherwise
    ask the network for them.
    """
    tc, high, low = dscp << 2 | ecn, ev >> 16, ev & 0xFFFF
    sport, label = (high, low) if chosen.dialect.ev_halves == "high-in-port" else (low, high)
    if chosen.dialect.ev_halves == "low-in-both":
        label = ev & 0xFFFFF
    inner_label = 0 if chosen.dialect.ev_label == "outer" else label
    outer_label = 0 if chosen.dialect.ev_label == "inner" else label
    outer = IPv6(src=outer_src or src, dst=da, tc=tc, fl=outer_label, nh=41, hlim=64)
    inner = IPv6(src=src, dst=dst, tc=tc, fl=inner_label, nh=17, hlim=64)
    dport = chosen.dialect.udp_port_of(UDP_PORTS[0]) if udp_port is None else udp_port
    return Ether(dst=ether_dst, src=ether_src) / outer / inner / UDP(sport=sport, dport=dport, chksum=0)


def entropy(packet: Packet) -> int:
    """The EV that a packet carries in its UDP source port and a flow label, as the dialect has it."""
    udp = packet[UDP]
    labelled = packet[IPv6] if chosen.dialect.ev_label == "outer" else udp.underlayer  # the first is the outer one
    if chosen.dialect.ev_halves == "low-in-both":
        return int(labelled.fl)
    label = labelled.fl & 0xFFFF
    return int(label << 16 | udp.sport if chosen.dialect.ev_halves == "low-in-port" else udp.sport << 16 | label)


def usids(address: str) -> list[int]:
    """The micro-segments of a destination address, the active one first (F3216: 32 bits of block, 16 a uSID)."""
    words = struct.unpack("!8H", IPv6Address(address).packed)
    return [word for word in words[2:] if word]
