"""Two endpoints on a bench, and flows of writes over a virtual wire."""

from tests.helpers.transport.bench import Bench, Packet, ev_set
from tests.helpers.transport.flows import Flow, run
from tests.helpers.transport.virtual_wire import Faults, Link, Wire, roce_wire

__all__ = ["Bench", "Faults", "Flow", "Link", "Packet", "Wire", "ev_set", "roce_wire", "run"]
