"""What ends a program's session."""


class Violation(Exception):  # noqa: N818 (the program's deed, not our error)
    """A message that the library never sends: its sender is cut off."""
