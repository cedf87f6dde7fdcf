"""The failure `grey-link` as a scenario file."""

from answers.failures.failures import failing

SCENARIO = failing("grey-link")
