"""The failure `incast` as a scenario file."""

from answers.failures.failures import failing

SCENARIO = failing("incast")
