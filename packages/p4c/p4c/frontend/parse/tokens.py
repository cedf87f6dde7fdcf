"""Tokens, eight bytes each: a number says where a token lies in the program's texts, and of what kind it is.

Any source so costs a few times its size until there is a tree. From the lowest bit: 22 bits of the
position, 22 of the length, 3 of the kind, 1 whether the token is glued to the one before, 16 of the macro's use.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.texts import Texts

_PLACE = (1 << 22) - 1
LENGTH_AT, _KIND_AT, GLUED_AT, _USE_AT = 22, 44, 47, 48
KIND = 7 << _KIND_AT
ID, INT, STR, OP, NEWLINE, END, ZERO, ONE = (kind << _KIND_AT for kind in range(8))
_NAMES = ("id", "int", "str", "op", "newline", "end", "int", "int")
_SORTS = [(name, glued) for glued in (False, True) for name in _NAMES]
_WRITTEN = {NEWLINE: "\n", END: "end of file", ZERO: "0", ONE: "1"}  # instead of what is in the text


def of_kind(code: int, kind: int) -> int:
    """Another token at the same place."""
    return code & ~KIND | kind


def text_of(code: int, texts: Texts) -> str:
    if code & KIND >= NEWLINE:
        return _WRITTEN[code & KIND]
    source = texts.at(code & _PLACE)
    start = (code & _PLACE) - source.base
    return source.text[start : start + (code >> LENGTH_AT & _PLACE)]


def names(codes: Iterable[int], texts: Texts) -> Iterator[tuple[int, str]]:
    """Each name among tokens, with its place among them."""
    base, end, text = 0, 0, ""
    for index, code in enumerate(codes):
        if code & KIND == ID:
            start = code & _PLACE
            if not base <= start < end:
                source = texts.at(start)
                base, end, text = source.base, source.end, source.text
            start -= base
            yield index, text[start : start + (code >> LENGTH_AT & _PLACE)]


@dataclass(slots=True)
class Token:
    """`kind` is id, int, str, op, newline or end. `glued` tells that the token follows the one before without a gap."""

    kind: str
    text: str
    span: SourceSpan
    glued: bool

    def __repr__(self) -> str:
        return f"{self.span.line}:{self.span.column}:{self.kind}:{self.text!r}"


def made(codes: Iterable[int], texts: Texts) -> list[Token]:
    """The tokens that the numbers mean."""
    tokens = []
    start = end = line = 0
    file, text, base = "", "", 0
    for code in codes:
        at, length = (code & _PLACE) - base, code >> LENGTH_AT & _PLACE
        if not start <= at < end:  # not in the line of the token before, as nearly all are
            source = texts.at(at + base)
            at, file, text, base = at + base - source.base, source.file, source.text, source.base
            line, _ = source.place(at)
            start, end = source.bounds(line)
        kind, glued = _SORTS[code >> _KIND_AT & 15]
        word = text[at : at + length] if code & KIND < NEWLINE else _WRITTEN[code & KIND]
        via = _via(code, texts) if code >> _USE_AT else ""
        tokens.append(Token(kind, word, SourceSpan(file, line, at - start + 1, length, via), glued))
    return tokens


def _via(code: int, texts: Texts) -> str:
    (macro,) = made([texts.uses[code >> _USE_AT]], texts)
    return f"in the text of macro {macro.text}, used at {macro.span}"


def used(body: Iterable[int], macro: int, texts: Texts) -> array[int]:
    """The tokens of a macro's text as they appear where the macro is used."""
    use = len(texts.uses) << _USE_AT
    texts.uses.append(macro)
    return array("Q", (code if code >> _USE_AT else code | use for code in body))


class Tokens(Sequence[Token]):
    """Tokens made of their numbers when they are asked for."""

    def __init__(self, codes: array[int], texts: Texts) -> None:
        self.codes = codes
        self.texts = texts

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, index: int) -> Token: ...
    @overload
    def __getitem__(self, index: slice) -> Tokens: ...
    def __getitem__(self, index: int | slice) -> Token | Tokens:
        if isinstance(index, slice):
            return Tokens(self.codes[index], self.texts)
        return made([self.codes[index]], self.texts)[0]
