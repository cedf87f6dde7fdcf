"""The failure `flap` as a scenario file."""

from answers.failures.failures import failing

SCENARIO = failing("flap")
