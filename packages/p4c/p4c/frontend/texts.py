"""The texts that a program is read from, and the places in them: positions, lines, columns."""

import re
from array import array
from bisect import bisect_right


class Texts:
    """All texts of a program as one, each with a line break behind it; a file that is included twice is there twice.

    `uses` are the tokens (`parse/tokens.py`) at which macros were used; the first one is none.
    """

    def __init__(self) -> None:
        self.text = ""
        self.starts = array("I", [0])  # where each line begins, and where the next text will
        self.uses = array("Q", [0])
        self._files: list[str] = []
        self._first = array("I")  # line of each file, among all
        self._lines: dict[str, range] = {}  # of a file by its name, among all; if it was read twice, of the last time
        self._shown = (-1, "")

    def add(self, file: str, text: str) -> int:
        """The position of the text's first character."""
        base, first = len(self.text), len(self.starts) - 1
        self.text = f"{self.text}{text}\n"
        self.starts.extend(m.end() for m in re.compile("\n").finditer(self.text, base))
        self._files.append(file)
        self._first.append(first)
        self._lines[file] = range(first, len(self.starts) - 1)
        return base

    def place(self, position: int) -> tuple[str, int, int, int]:
        """The file that holds a position, the line in it, where that line begins and where the next one does."""
        line = min(bisect_right(self.starts, position), len(self.starts) - 1) - 1
        file = bisect_right(self._first, line) - 1
        return self._files[file], line - self._first[file] + 1, self.starts[line], self.starts[line + 1]

    def line(self, file: str, number: int) -> str | None:
        """A line without its end; None if there is none of that number. The last one is kept: many ask for it again."""
        lines = self._lines.get(file, range(0))
        if not 0 < number <= len(lines):
            return None
        line = lines[number - 1]
        if self._shown[0] != line:
            self._shown = line, self.text[self.starts[line] : self.starts[line + 1] - 1]
        return self._shown[1]
