"""Scapy layers for MRC (OCP MRC 1.0) and for the RoCEv2 RC packets of the baseline: for crafting and decoding.

    >>> from scapy.all import rdpcap
    >>> from endpoint.scapy import *
    >>> frame = encapsulate("fcbb:bbbb:1000:2003:1001:3002::", "fd00::1", "fd00::2", ev=0x00010007)
    >>> frame /= Mrc(opcode="WRITE_ONLY", dqpn=0x123, psn=7) / Meth(msn=1) / Reth(va=0x1000, rkey=5, length=3) / b"abc"
    >>> rdpcap("h0.pcap")[0][Mrc].show()

Optional: it needs Scapy (GPL-2.0), which nothing else in the project imports. The layers are
made of the table in `endpoint.nic.headers`. The ICRC is computed when a packet is built, and kept when one was
dissected; a trimmed packet has none.

All layers can build and dissect MRC-Client's reading of the specification instead (docs/reference/dialects.md):

    >>> use_dialect("mrc-client")
"""

from __future__ import annotations

from endpoint.scapy.layers import (
    ENDPOINT_OPS,
    MARKS,
    NACK_REASONS,
    OPCODES,
    UDP_PORTS,
    Aeth,
    CcState,
    Cnp,
    Eeth,
    Erth,
    ImmDt,
    Meth,
    Mrc,
    Neth,
    Peth,
    Reth,
    Seth,
    Tseth,
    client_check,
    compute_check,
    compute_icrc,
    encapsulate,
    entropy,
    use_dialect,
    usids,
)

__all__ = [
    "ENDPOINT_OPS", "MARKS", "NACK_REASONS", "OPCODES", "UDP_PORTS", "Aeth", "CcState", "Cnp", "Eeth", "Erth", "ImmDt",
    "Meth", "Mrc", "Neth", "Peth", "Reth", "Seth", "Tseth", "client_check", "compute_check", "compute_icrc",
    "encapsulate", "entropy", "use_dialect", "usids",
]  # fmt: skip
