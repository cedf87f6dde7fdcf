"""The server of verbs for programs in hosts, on real links and, step by step, in virtual time."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from endpoint.uverbs.server import UverbsServer
    from endpoint.uverbs.stepped import ANSWER_S, ProgramStuckError, SteppedProgram, SteppedUverbs
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = ["ANSWER_S", "ProgramStuckError", "SteppedProgram", "SteppedUverbs", "UverbsServer"]
