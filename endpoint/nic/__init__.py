"""The parts of any NIC, MRC's or RoCE's, without I/O: frames, packets, ports, memory, verbs, the scheduler."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from endpoint.nic.config import NEVER, AlgorithmError, Settings
    from endpoint.nic.events import EventLog
    from endpoint.nic.nic import Turns
    from endpoint.nic.port import PortSet
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "NEVER", "AlgorithmError", "EventLog", "PortSet", "Settings", "Turns", "dialect", "frame", "icrc", "wire",
]  # fmt: skip
