"""Text of unknown origin, such as a run folder of another person, made harmless for a terminal."""

import unicodedata

__all__ = ["path_line", "printable", "printable_text"]

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(line: str) -> str:
    """One line without characters that a terminal obeys, such as ESC: each becomes U+FFFD. A line break does too,
    because text that holds one could pass for another line. Tabs and spaces of all widths stay."""
    return "".join(character if _shown(character) else REPLACEMENT for character in line)


def printable_text(text: str) -> str:
    """Text of several lines, each made harmless."""
    return "\n".join(map(printable, text.split("\n")))


def path_line(label: str, path: object, more: str = "") -> str:
    """The line by which a command names a file or a folder, such as `wrote PATH`: another party may have named it."""
    return f"{label} {printable(str(path))}{more}\n"


def _shown(character: str) -> bool:
    return character.isprintable() or character == "\t" or unicodedata.category(character) == "Zs"
