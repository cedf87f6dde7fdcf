"""The row that is kept of one run: its verdict, the finding of every check, and a few figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from common import plain_file
from common.outcome import error_line
from judging import WORDS, Verdict

VERDICTS = (*WORDS.values(), "made")
"""Of a row: the verdict of its run, or "made" for a run of the paper's figures, which is measured and not judged."""


@dataclass(frozen=True, slots=True)
class Row:
    """One run. `findings` has the holds of each check, `metrics` the numbers of `studies.sweeping.metric`.

    `error` says why the run was broken off, and then the verdict is unknown. `seconds` is how long the run took, which
    no table shows: tables are the same wherever and however often the runs are made. `curves` are points by name, for
    what is drawn (`paper`); a sweep keeps none.
    """

    key: str
    seed: int
    verdict: str
    findings: Mapping[str, bool | None] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)  # of the findings that are not true
    metrics: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    seconds: float = 0.0
    curves: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether the verdict is true; an unknown run has not passed."""
        return self.verdict == WORDS[True]

    def to_text(self) -> str:
        """One line of JSON; `from_text` is the inverse."""
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_text(cls, text: str | bytes) -> Row:
        """The row in this text. ValueError or TypeError when it is none."""
        row = cls(**plain_file.parse_json(text))
        if row.verdict not in VERDICTS:
            raise ValueError(f"its verdict must be one of {', '.join(VERDICTS)} (got {row.verdict!r})")
        return row


def row_of(key: str, seed: int, verdict: Verdict, metrics: Mapping[str, float]) -> Row:
    """The row of a run that was judged."""
    findings, reasons = by_check(verdict)
    return Row(key, seed, verdict.word, findings, reasons, metrics)


def by_check(verdict: Verdict) -> tuple[dict[str, bool | None], dict[str, str]]:
    """The holds of each check, and the reasons of those that are not true; a check's second finding gets a number."""
    findings: dict[str, bool | None] = {}
    reasons: dict[str, str] = {}
    for finding in verdict.findings:
        name, number = finding.check, 1
        while name in findings:
            number += 1
            name = f"{finding.check} {number}"
        findings[name] = finding.holds
        if finding.holds is not True:
            reasons[name] = finding.reason
    return findings, reasons


def broken(key: str, seed: int, error: BaseException) -> Row:
    """The row of a run that an exception ended: unknown, with what the exception said."""
    said = error_line(error) if isinstance(error, OSError) else str(error)
    return Row(key, seed, WORDS[None], error=f"{type(error).__name__}: {said or 'no more is known'}"[:2000])
