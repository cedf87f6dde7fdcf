"""One fabric, several answers to a dead link."""

__all__: list[str] = []
