"""Tables of text for a terminal: numbers to the right, the rest to the left."""

from collections.abc import Sequence

__all__ = ["aligned"]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, the first one the head; each column as wide as its widest cell."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    right = [
        any(row[column] for row in rows[1:]) and all(is_number(row[column]) for row in rows[1:])
        for column in range(len(rows[0]))
    ]
    return [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]


def is_number(cell: str) -> bool:
    """Whether a cell is a number, perhaps with a sign or in percent, or empty."""
    bare = cell.strip(" +−–-%")
    return not bare or bare.replace(",", "").replace(".", "").replace("-", "").isdigit()
