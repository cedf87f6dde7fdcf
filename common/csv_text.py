"""Tables of comma-separated values whose texts may come from others: no cell is a formula, none moves a terminal."""

import csv
import io
from collections.abc import Iterable, Sequence
from contextlib import suppress

from common.terminal.printable import printable

__all__ = ["csv_text"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a text that begins so for a formula, and may start programs or send cells elsewhere."""


def csv_text(head: Sequence[str], rows: Iterable[Sequence[object]], as_it_is: Sequence[str] = ()) -> str:
    """The file's text. Columns `as_it_is` hold this project's own words."""
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow([cell(name) for name in head])
    for row in rows:
        writer.writerow([
            cell(value) if isinstance(value, str) and name not in as_it_is else value
            for name, value in zip(head, row, strict=True)
        ])  # fmt: skip
    return made.getvalue()


def cell(text: str) -> str:
    """A text on one line that no spreadsheet executes; numbers stay."""
    with suppress(ValueError):
        float(text)
        return text
    return f"'{printable(text)}" if text.startswith(_FORMULA) else printable(text)
