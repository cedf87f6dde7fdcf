"""Where in the P4 source a part of the program comes from."""

from common.records import Frozen


class SourceInfo(Frozen):
    filename: str
    line: int
    column: int
    fragment: str  # the line, or its beginning

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"
