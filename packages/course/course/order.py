"""The labs in the order in which a course takes them."""

NAMES = ("usids", "hop", "tables", "trim", "spray", "health", "window", "ports", "faults", "figure")
"""Each has a folder in `labs/`. Their numbers begin at 1."""


def name_of(word: str) -> str:
    """The name of a lab that is given by number or name. ValueError with the valid ones."""
    for number, name in enumerate(NAMES, 1):
        if word in (str(number), name):
            return name
    valid = ", ".join(f"{number} ({name})" for number, name in enumerate(NAMES, 1))
    raise ValueError(f"there is no lab {word!r}; valid are {valid}")
