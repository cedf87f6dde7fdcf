"""A verdict: true, false or unknown, with the findings that it rests on.

A run is true when every finding is true, false when a finding is false, and otherwise unknown. Too little evidence is
unknown, never a pass. A false finding outweighs an unknown one, except where the unknown finding says that the evidence
itself is spoilt (packets lost outside the modelled fabric, a journal that is torn): then nothing was shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

EXIT_STATUS = {True: 0, False: 1, None: 3}
WORDS = {True: "true", False: "false", None: "unknown"}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `holds` is None if the evidence does not say; with `spoils` the run is then unknown."""

    check: str
    holds: bool | None
    reason: str
    figures: dict[str, Any] = field(default_factory=dict)
    spoils: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a run. `exit_status` is 0 for true, 1 for false, 3 for unknown."""

    holds: bool | None
    findings: tuple[Finding, ...]

    @property
    def word(self) -> str:
        return WORDS[self.holds]

    @property
    def exit_status(self) -> int:
        return EXIT_STATUS[self.holds]


def conclude(findings: Sequence[Finding]) -> Verdict:
    """The verdict of these findings, by the rule above; unknown without findings."""
    if any(finding.holds is None and finding.spoils for finding in findings):
        holds = None
    elif any(finding.holds is False for finding in findings):
        holds = False
    elif not findings or any(finding.holds is None for finding in findings):
        holds = None
    else:
        holds = True
    return Verdict(holds, tuple(findings))
