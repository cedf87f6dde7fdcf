"""Jobs that are too large to simulate packet by packet, from exact runs of parts that cannot influence each other."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from scale.answer import Answer, answered
    from scale.carried import PHASE, done
    from scale.job import ALL_REDUCE, ALL_TO_ALL, RING, Job
    from scale.part import Cut
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = ["ALL_REDUCE", "ALL_TO_ALL", "PHASE", "RING", "Answer", "Cut", "Job", "answered", "bar", "done"]
