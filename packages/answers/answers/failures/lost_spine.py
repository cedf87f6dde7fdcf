"""The failure `lost-spine` as a scenario file."""

from answers.failures.failures import failing

SCENARIO = failing("lost-spine")
