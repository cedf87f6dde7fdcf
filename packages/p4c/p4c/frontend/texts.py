"""The texts that a program is read from, and the places in them: positions, lines, columns."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right


class Source:
    """One file's text. `base` is the position of its first character among all texts of the program."""

    __slots__ = ("_shown", "base", "end", "file", "starts", "text")

    def __init__(self, file: str, text: str, base: int) -> None:
        self.file = file
        self.text = text
        self.base = base
        self.end = base + len(text)
        self.starts = array("I", [0])  # where each line begins
        self.starts.extend(m.end() for m in re.finditer("\n", text))
        self._shown = (0, "")

    def place(self, index: int) -> tuple[int, int]:
        """Line and column, which count from 1, of a character of this text."""
        line = bisect_right(self.starts, index)
        return line, index - self.starts[line - 1] + 1

    def bounds(self, line: int) -> tuple[int, int]:
        """Where a line begins, and where the next one does."""
        return self.starts[line - 1], self.starts[line] if line < len(self.starts) else len(self.text) + 1

    def line(self, number: int) -> str | None:
        """A line without its end; None if there is none of that number. The last one is kept: many ask for it again."""
        if not 0 < number <= len(self.starts):
            return None
        if self._shown[0] != number:
            start, end = self.bounds(number)
            self._shown = number, self.text[start : end - 1]
        return self._shown[1]


class Texts:
    """All texts of a program, one behind the other; a file that is included twice is there twice.

    `uses` are the tokens (`parse/tokens.py`) at which macros were used; the first one is none.
    """

    def __init__(self) -> None:
        self.uses = array("Q", [0])
        self._named: dict[str, Source] = {}
        self._sources: list[Source] = []
        self._bases = array("I")
        self._last = Source("", "", 0)

    def add(self, file: str, text: str) -> Source:
        base = self._sources[-1].end + 1 if self._sources else 0
        self._last = self._named[file] = Source(file, text, base)
        self._sources.append(self._last)
        self._bases.append(base)
        return self._last

    def base(self, file: str) -> int:
        """Where the text of that name begins; 0 if none was read."""
        return self._named[file].base if file in self._named else 0

    def at(self, position: int) -> Source:
        """The text that holds a position."""
        if not self._last.base <= position <= self._last.end:
            self._last = self._sources[bisect_right(self._bases, position) - 1]
        return self._last

    def line(self, file: str, number: int) -> str | None:
        """A line of the text of that name that was read last."""
        source = self._named.get(file)
        return source.line(number) if source else None
