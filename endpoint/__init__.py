"""MRC endpoints: a transport without I/O, a NIC driver around it, an agent in every host."""

# First of all: every other module of this package may have a compiled form.
from endpoint.compiled import FORM as FORM  # isort: split

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from endpoint.decoder import Decoder, acknowledges
    from endpoint.denylist import FAULTS
    from endpoint.frame_filter import ACCEPT_WHOLE
    from endpoint.group import AgentClient, WorkloadGroup, call
    from endpoint.host import HostNic
    from endpoint.transport import QPInfo, Transport
    from endpoint.virtual_host import VirtualHost
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "ACCEPT_WHOLE", "FAULTS", "AgentClient", "Decoder", "HostNic", "QPInfo", "Transport", "VirtualHost",
    "WorkloadGroup", "acknowledges", "blame", "call", "compiled", "factory", "mrc", "nic", "packet_sockets", "plugins",
    "profile", "uverbs", "workloads",
]  # fmt: skip
