"""The answer to a request that breaks a rule."""


class RefusedError(ValueError):
    """A request that cannot be carried out; nothing was changed."""
