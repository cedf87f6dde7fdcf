"""Text of a user in a program or a command: as a value, and never as code."""

import shlex
from pathlib import Path

__all__ = ["command", "docstring", "one_name", "quoted"]

_SPECIAL = frozenset("\\'!")
"""Printable characters that mean something between `$'` and `'`, or to a shell's history."""


def command(*words: object) -> str:
    """A `./lab` command to be copied into a shell, on one line. A path that begins with a hyphen is no option there."""
    named = (f"./{word}" if isinstance(word, Path) and str(word).startswith("-") else str(word) for word in words)
    return " ".join(["./lab", *map(quoted, named)])


def quoted(word: str) -> str:
    """One word of a shell's command line, printable. A word with control characters or with bytes that are no UTF-8 is
    written as `$'…'`, which bash, zsh and POSIX 2024 read."""
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(map(_escaped, word)) + "'"


def _escaped(character: str) -> str:
    if character.isprintable() and character not in _SPECIAL:
        return character
    how = "surrogateescape" if "\udc80" <= character <= "\udcff" else "surrogatepass"
    return "".join(f"\\x{byte:02x}" for byte in character.encode(errors=how))


def docstring(text: str) -> str:
    """A Python literal in triple quotes that is `text`, with its lines as lines. No text ends it."""

    def safe(character: str) -> str:
        if character == '"':
            return '\\"'
        plain = character == "\n" or (character.isprintable() and character != "\\")
        return character if plain else repr(character)[1:-1]

    return '"""' + "".join(map(safe, text)) + '"""'


def one_name(text: str, what: str) -> str:
    """`text`, if it names an entry of a folder and no other place. ValueError says what it is for otherwise."""
    if text in ("", ".", "..") or "/" in text or "\0" in text:
        raise ValueError(f"{what} must have no slash, and be no dots alone (got {text!r})")
    return text
