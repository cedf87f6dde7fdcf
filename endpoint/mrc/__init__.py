"""The MRC transport without I/O: the clock and the wire are arguments."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from endpoint.mrc.algorithms import OPERATIONS, SEAMS, algorithms_of
    from endpoint.mrc.congestion.cc_profile import PathTraits
    from endpoint.mrc.congestion.congestion import Congestion
    from endpoint.mrc.congestion.granter import CREDIT_UNIT, CreditGranter
    from endpoint.mrc.endpoint import Endpoint
    from endpoint.mrc.loss.loss_detection import LossDetection, PacketWindow
    from endpoint.mrc.operations import EndpointOperations
    from endpoint.mrc.parameter import Parameter, Values
    from endpoint.mrc.paths.ev_set import EvPath, EvSet, PlaneEvs
    from endpoint.mrc.paths.parked import Parked
    from endpoint.mrc.paths.selection import Selection
    from endpoint.mrc.peer import PORTS_ALL, REQUEST_IDS, Peer
    from endpoint.mrc.peers import PeerTable
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "CREDIT_UNIT", "OPERATIONS", "PORTS_ALL", "REQUEST_IDS", "SEAMS", "Congestion", "CreditGranter", "Endpoint",
    "EndpointOperations", "EvPath", "EvSet", "LossDetection", "PacketWindow", "Parameter", "Parked", "PathTraits",
    "Peer", "PeerTable", "PlaneEvs", "Selection", "Values", "algorithms_of", "presets",
]  # fmt: skip
