"""The plane ports of a NIC on real links: packet sockets, link state, the event loop."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from endpoint.packet_sockets.driver import RING_BYTES
    from endpoint.packet_sockets.ring import PacketSocket
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = ["RING_BYTES", "PacketSocket"]
