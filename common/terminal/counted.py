"""A number with its noun."""

__all__ = ["counted"]


def counted(number: int, one: str, several: str = "") -> str:
    """ "1 fault", "4 faults". `several` is another plural, perhaps with a verb: "1 path is", "2 paths are"."""
    return f"{number} {one if number == 1 else several or f'{one}s'}"
