"""The failures of the contest: one load, and a scenario file for each failure."""

from answers.failures.failures import FAILURES, file_of

__all__ = ["FAILURES", "file_of"]
