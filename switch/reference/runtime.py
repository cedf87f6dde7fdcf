"""Everything that the compiled parts of one loaded program share."""

from typing import Any

from p4c.model import Program
from switch.reference.expressions import ExpressionCompiler
from switch.reference.externs import Externs
from switch.reference.packet import FieldSlots, Packet
from switch.reference.rng import SplitMix64
from switch.reference.trace import Trace


class Runtime:
    """`now_ns` is the time of the event being processed; `trace` is None unless someone listens."""

    def __init__(self, program: Program, rng: SplitMix64, trace: Trace | None) -> None:
        self.program = program
        self.layout = FieldSlots(program)
        self.externs = Externs(program)
        self.expressions = ExpressionCompiler(self.layout, self.externs)
        self.rng = rng
        self.trace = trace
        self.now_ns = 0

    def record(self, packet: Packet, kind: str, **data: Any) -> None:
        """Add a step of the packet to the trace, if there is one."""
        if self.trace is not None:
            self.trace.record(self.now_ns, packet.id, kind, **data)
