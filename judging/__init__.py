"""Judging: pure folds over a run's merged journal, from statistics to a verdict and a report."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from judging.run import SECOND_NS, FaultSpan, Run, Span, fault_spans, journal_files, mapped
    from judging.single_plane import on_single_plane_target
    from judging.story import PaperRow, Story
    from judging.verdict import WORDS, Finding, Verdict
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "SECOND_NS", "WORDS", "FaultSpan", "Finding", "PaperRow", "Run", "Span", "Story", "Verdict", "arrays",
    "checks", "commands", "evidence", "fault_spans", "jobs", "journal", "journal_files", "judge", "mapped", "measures",
    "on_single_plane_target", "reports", "sample_size", "units",
]  # fmt: skip
