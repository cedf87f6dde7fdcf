"""The reference interpreter: `ReferenceEngine` runs a `p4c.model.Program` in Python and can explain each step."""

from switch.reference.engine import ReferenceEngine
from switch.reference.trace import Trace

__all__ = ["ReferenceEngine", "Trace"]
