"""The error of plans, from any kind of file."""


class PlanError(ValueError):
    """A plan that cannot be built. The message names the key, the rule and what would be valid."""
