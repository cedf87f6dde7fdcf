"""The error of plans, from any kind of file."""

from __future__ import annotations


class PlanError(ValueError):
    """A plan that cannot be built. The message names the key, the rule and what would be valid."""
