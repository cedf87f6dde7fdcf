"""An incident: a lab under load with a hidden fault, the tools to look for the fault, and the answer."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from operations.incident.draw import Incident
    from operations.incident.kind import KINDS, AnswerError, nodes_of
    from operations.incident.session import IncidentSession
    from operations.incident.solving import commands, recorded
    from operations.incident.words import parse
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = ["KINDS", "AnswerError", "Incident", "IncidentSession", "commands", "draw", "nodes_of", "parse", "recorded"]
