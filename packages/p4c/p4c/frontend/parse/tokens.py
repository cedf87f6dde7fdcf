"""Tokens, eight bytes each: a number says where a token lies in the program's texts, and of what kind it is.

Any source so costs a few times its size until there is a tree. From the lowest bit: 22 bits of the position, 22 of the
end, 1 whether the token is glued to the one before, 3 of the kind, 16 of the macro's use (`preprocessor.py` allows
fewer). A plain token is so a number below NEWLINE.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.texts import Texts

END_AT, GLUED_AT, _KIND_AT, USE_AT = 22, 44, 45, 48
PLACE = (1 << END_AT) - 1  # the last position that fits: all texts together have at most as many characters
KIND = 7 << _KIND_AT
ID, INT, STR, OP, NEWLINE, END, ZERO, ONE = (kind << _KIND_AT for kind in range(8))
BITS = (ZERO, ONE)
_NAMES = ("id", "int", "str", "op", "newline", "end", "int", "int")
_SORTS = [(name, glued) for name in _NAMES for glued in (False, True)]
_WRITTEN = {NEWLINE: "\n", END: "end of file", ZERO: "0", ONE: "1"}  # instead of what is in the text
CHUNK = 512  # tokens that are made at once
_CHUNKS_KEPT = 4  # a guess goes back to them, and they are large


class Token(NamedTuple):
    """`kind` is id, int, str, op, newline or end. `glued` tells that the token follows the one before without a gap."""

    kind: str
    text: str
    glued: bool
    file: str
    line: int
    column: int
    length: int
    via: str

    @property
    def span(self) -> SourceSpan:
        return SourceSpan(*self[3:])


def text_of(code: int, texts: Texts) -> str:
    return _WRITTEN.get(code & KIND) or texts.text[code & PLACE : code >> END_AT & PLACE]


def decode(codes: Iterable[int], texts: Texts) -> list[Token]:
    """The tokens that the numbers mean."""
    tokens = []
    start = behind = line = 0  # of the line of the token before, in which nearly all are
    file, text = "", texts.text
    new = tuple.__new__  # without a call of Python
    for code in codes:
        at, end = code & PLACE, code >> END_AT & PLACE
        if not start <= at < behind:
            file, line, start, behind = texts.place(at)
        kind, glued = _SORTS[code >> GLUED_AT & 15]
        word, via = (text[at:end], "") if code < NEWLINE else (text_of(code, texts), _via(code, texts))
        tokens.append(new(Token, (kind, word, glued, file, line, at - start + 1, end - at, via)))
    return tokens


def _via(code: int, texts: Texts) -> str:
    if not code >> USE_AT:
        return ""
    (macro,) = decode([texts.uses[code >> USE_AT]], texts)
    return f"in the text of macro {macro.text}, used at {macro.span}"


class Tokens:
    """Tokens made of their numbers when they are asked for."""

    def __init__(self, codes: array[int], texts: Texts) -> None:
        self.codes = codes
        self.texts = texts
        self.levels = levels = array("i", [0])  # how many braces are open before each token that was made so far

        @lru_cache(_CHUNKS_KEPT)
        def chunk(number: int) -> list[Token]:
            tokens = decode(codes[number * CHUNK : (number + 1) * CHUNK], texts)
            if len(levels) == number * CHUNK + 1:
                for token in tokens:
                    levels.append(levels[-1] + (token.text == "{") - (token.text == "}"))
            return tokens

        self.chunk = chunk

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, index: int) -> Token:
        return self.chunk(index // CHUNK)[index % CHUNK]

    def __iter__(self) -> Iterator[Token]:
        return iter(decode(self.codes, self.texts))
