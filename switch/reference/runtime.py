"""Everything that the compiled parts of one loaded program share."""

from __future__ import annotations

from switch.model.program import Program
from switch.reference.expressions import Expressions
from switch.reference.externs import Externs
from switch.reference.packet import Layout
from switch.reference.rng import SplitMix64
from switch.reference.trace import Trace


class Runtime:
    """`now_ns` is the time of the event being processed; `trace` is None unless someone listens."""

    def __init__(self, program: Program, rng: SplitMix64, trace: Trace | None) -> None:
        self.program = program
        self.layout = Layout(program)
        self.externs = Externs(program)
        self.expressions = Expressions(self.layout, self.externs)
        self.rng = rng
        self.trace = trace
        self.now_ns = 0
