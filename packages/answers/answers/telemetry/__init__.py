"""MRC on switches that write telemetry into packets, for congestion controls such as HPCC."""

from answers.telemetry.edge import EDGE, Hop, Report, report
from running.transport_choice import TransportChoice

__all__ = ["MRC_INT", "Hop", "Report", "report"]

MRC_INT = TransportChoice(
    "mrc-int",
    "MRC with switches that write in-band telemetry for congestion controls (congestion=hpcc)",
    "mrc",
    variant="answers.telemetry.fabric:RECORDING",
    edge=EDGE,
)
