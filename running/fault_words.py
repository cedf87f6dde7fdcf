"""Faults added to a timeline by a line of words."""

import re
from collections.abc import Sequence

from common.terminal.choices import no_such
from scenarios import Phase, TimedFault
from topo.fault import VERBS, FaultError

__all__ = ["parse", "spell"]

USAGE = "VERB TARGET [NUMBER] @SECONDS [for SECONDS] [in PHASE]"
EXAMPLE = f"{next(iter(VERBS))} p0l0-p0s0 @5 for 3"
WORDS = re.compile(
    r"(?P<verb>\S+)\s+(?P<target>\S+)(?:\s+(?P<value>[\d.]+)%?)?\s+@\s*(?P<at>[\d.]+)"
    r"(?:\s+for\s+(?P<for>[\d.]+))?(?:\s+in\s+(?P<phase>\S+))?"
)


def parse(text: str, phases: Sequence[Phase], seed: int = 0) -> TimedFault:
    """A fault of these words. `@` counts from the beginning of its phase, which is `faults` where that takes time.

    FaultError shows the form. The rehearsal checks target, number and times.
    """
    match = WORDS.fullmatch(text.strip())
    if match is None:
        raise FaultError(f"--fault must be {USAGE}, such as {EXAMPLE!r} (got {text!r})")
    if match["verb"] not in VERBS:
        raise FaultError(f"--fault {text!r}: {no_such('fault', match['verb'], VERBS)}")
    try:
        at_s = float(match["at"])
        for_s = None if match["for"] is None else float(match["for"])
        value = None if match["value"] is None else float(match["value"])
    except ValueError as error:
        raise FaultError(f"--fault {text!r}: {error}") from None
    return TimedFault(at_s, match["verb"], match["target"], for_s, value, seed, match["phase"] or usual_phase(phases))


def usual_phase(phases: Sequence[Phase]) -> str:
    """The phase for faults that name none: `faults`, or the first phase that takes time and is no warm-up."""
    timed = [phase.name for phase in phases if phase.seconds > 0]
    return "faults" if "faults" in timed else next((name for name in timed if name != "warmup"), timed[0])


def spell(fault: TimedFault) -> str:
    """The words that `parse` reads as this fault."""
    value = "" if fault.value is None else f" {fault.value:g}"
    lasting = "" if fault.for_s is None else f" for {fault.for_s:g}"
    return f"{fault.verb} {fault.target}{value} @{fault.at_s:g}{lasting} in {fault.phase}"
