"""The plane ports of a NIC on real links: packet sockets, link state, the event loop."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from endpoint.packet_sockets.driver import RING_BYTES
    from endpoint.packet_sockets.loop import Loop
    from endpoint.packet_sockets.ring import (
        ETH_P_ALL,
        PACKET_IGNORE_OUTGOING,
        SO_RCVBUFFORCE,
        SOL_PACKET,
        FrameRing,
        PacketSocket,
    )
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "ETH_P_ALL", "PACKET_IGNORE_OUTGOING", "RING_BYTES", "SOL_PACKET", "SO_RCVBUFFORCE", "FrameRing", "Loop",
    "PacketSocket",
]  # fmt: skip
