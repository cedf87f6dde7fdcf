"""The failure `lost-nic-port` as a scenario file."""

from answers.failures.failures import failing

SCENARIO = failing("lost-nic-port")
