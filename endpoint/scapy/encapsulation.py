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
    tc = dscp << 2 | ecn
    label = ev & 0xFFFFF if chosen.dialect.ev_bits == 20 else ev >> 16
    outer = IPv6(src=outer_src or src, dst=da, tc=tc, fl=label, nh=41, hlim=64)
    inner = IPv6(src=src, dst=dst, tc=tc, fl=label, nh=17, hlim=64)
    dport = udp_port or chosen.dialect.udp_port or UDP_PORTS[0]
    return Ether(dst=ether_dst, src=ether_src) / outer / inner / UDP(sport=ev & 0xFFFF, dport=dport, chksum=0)


def entropy(packet: Packet) -> int:
    """The EV that a packet carries in its UDP source port and the flow label above it, as the dialect has it."""
    udp = packet[UDP]
    label = udp.underlayer.fl
    return int(label if chosen.dialect.ev_bits == 20 else (label & 0xFFFF) << 16 | udp.sport)


def usids(address: str) -> list[int]:
    """The micro-segments of a destination address, the active one first (F3216: 32 bits of block, 16 a uSID)."""
    words = struct.unpack("!8H", IPv6Address(address).packed)
    return [word for word in words[2:] if word]
