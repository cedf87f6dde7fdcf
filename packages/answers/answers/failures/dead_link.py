"""The failure `dead-link` as a scenario file."""

from answers.failures.failures import failing

SCENARIO = failing("dead-link")
