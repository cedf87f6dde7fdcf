"""How far a hunt is: one live line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from typing import Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

from studies.hunting.hunt import Hunt

LINE_S = 30.0  # between two lines where the output cannot be redrawn


class HuntProgress:
    """A context manager. `hunt` is set before the first word is told."""

    def __init__(self, console: Console, plain: bool = False) -> None:
        self.hunt: Hunt | None = None
        self._console = console
        live = console.is_terminal and not plain and not console.quiet
        self._status: Status | None = console.status("hunting") if live else None
        self._told_s = 0.0

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def line(self) -> str:
        """Tries, how fast, and what was found."""
        hunt = self.hunt
        if hunt is None or not hunt.tries:
            return "nothing tried yet"
        a_minute = hunt.tries / max(hunt.elapsed_s, 1e-9) * 60
        return f"{hunt.tries} tries, {a_minute:.0f} a minute, {len(hunt.catches)} things found"

    def tell(self, words: str) -> None:
        """Something has happened."""
        if self._status is not None:
            self._status.update(Text(f"{self.line()}; {words}"))  # text: square brackets in a name are no markup
        hunt = self.hunt
        due = hunt is not None and hunt.elapsed_s - self._told_s >= LINE_S
        if " broke: " in words or (self._status is None and due):
            self._told_s = hunt.elapsed_s if hunt is not None else 0.0
            self._console.print(f"{self.line()}; {words}", highlight=False, soft_wrap=True, markup=False)
