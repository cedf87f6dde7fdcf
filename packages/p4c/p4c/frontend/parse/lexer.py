"""Characters to tokens (P4_16 specification, section 6.3), line structure kept for the preprocessor."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from p4c.frontend.diagnostics import Diagnostics, SourceSpan

# `>>` is not a token: in `bit<bit<8>>` it closes two brackets. The parser joins adjacent `>` where a shift may stand.
_LONG = "&&& |+| |-| ... << && || == != <= >= ++ .. += -= *= &= |= ^= ##"
_OPERATORS = [*_LONG.split(), *"{}()[]<>.,;:=+-*/%&|^!~?@#"]
# Possessive: a pattern that may give characters back remembers each, 300 bytes for one of a string.
_TOKEN = re.compile(
    r"(?P<space>(?:[ \t\r\f]++|\\\r?\n)++)"
    r"|(?P<newline>\n)"
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<open>/\*)"
    r"|(?P<int>\d+[ws](?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|0[dD][0-9_]+|[0-9_]+)"
    r"|0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|0[dD][0-9_]+|\d[0-9_]*)"
    r"|(?P<id>[A-Za-z_][A-Za-z0-9_]*)"
    r'|(?P<str>"(?:[^"\\\n]++|\\.)*+")'
    r"|(?P<op>" + "|".join(re.escape(o) for o in _OPERATORS) + ")",
    re.DOTALL,
)

TOKENS_MAX = 500_000  # of a program: each takes about 200 bytes, and what is made of them more
BITS_MAX = 65535  # of a type, and of a number without a width


@dataclass(slots=True)
class Token:
    """`kind` is id, int, str, op, newline or end. `glued` tells that the token follows the one before without a gap."""

    kind: str
    text: str
    span: SourceSpan
    glued: bool = False
    first: bool = False  # the first token of its line

    def __repr__(self) -> str:
        return f"{self.span.line}:{self.span.column}:{self.kind}:{self.text!r}"

    def used_at(self, macro: Token) -> Token:
        """This token of a macro's text as it appears where the macro is used."""
        if self.span.via:
            return self
        via = f"in the text of macro {macro.text}, used at {macro.span}"
        return replace(self, span=replace(self.span, via=via))


def tokenize(text: str, file: str, diagnostics: Diagnostics, most: int = TOKENS_MAX) -> list[Token]:
    """All tokens of one file, with a `newline` behind the last of each line. Unknown characters are reported and
    skipped; behind `most` tokens the rest is."""
    diagnostics.lines[file] = text.split("\n")
    tokens: list[Token] = []
    line, line_start, position, end = 1, 0, 0, len(text)
    first, glued = True, False
    match = _TOKEN.match
    while position < end:
        if text[position] == " ":  # nearly all gaps: no pattern is needed for them
            position, glued = position + 1, False
            continue
        m = match(text, position)
        if m is None:
            span = SourceSpan(file, line, position - line_start + 1)
            rest = text[position]
            if rest == '"':
                diagnostics.error("lex", "this string is not closed on its line", span)
                close = text.find("\n", position)
                position = close if close >= 0 else end
                continue
            diagnostics.error("lex", f"the character {rest!r} has no meaning in P4", span)
            position += 1
            continue
        kind = m.lastgroup or ""
        word = m.group()
        if kind == "open":
            span = SourceSpan(file, line, position - line_start + 1, 2)
            diagnostics.error("lex", "this comment is never closed", span)
            break
        if kind == "newline":
            if not first:
                tokens.append(Token("newline", "\n", SourceSpan(file, line, position - line_start + 1)))
            line, line_start, first, glued = line + 1, m.end(), True, False
        elif kind in ("space", "comment"):
            breaks = word.count("\n")
            if breaks:
                line += breaks
                line_start = position + word.rindex("\n") + 1
            glued = False
        else:
            span = SourceSpan(file, line, position - line_start + 1, len(word))
            if kind == "int" and not (len(word) <= _PLAIN_MAX and word.isdecimal()):
                try:
                    integer(word)
                except ValueError as error:
                    diagnostics.error("lex", str(error), span)
                    word = "0"
            if len(tokens) >= most:
                diagnostics.error("lex", f"a program must have at most {TOKENS_MAX} tokens, with all it includes", span)
                break
            tokens.append(Token(kind, word, span, glued, first))
            first, glued = False, True
        position = m.end()
    tokens.append(Token("newline", "\n", SourceSpan(file, line, max(1, end - line_start + 1))))
    return tokens


_BASES = {"0x": 16, "0b": 2, "0o": 8, "0d": 10}
_PLAIN_MAX = 18  # digits of a number without a width that Python reads as it stands, as nearly all are
_SIZED = re.compile(r"(\d+)([ws])(.+)")
_DIGITS_AT_ONCE = 4000  # Python converts at most 4300 decimal digits


def integer(text: str) -> tuple[int, int | None, bool]:
    """An integer literal's (value, width or None, signed): `4w10`, `8s0xF0`, `0b1010`, `1_000`.

    Raises ValueError, whose text is a complaint, where the literal has no digits or more bits than BITS_MAX.
    """
    if len(text) <= _PLAIN_MAX and text.isdecimal():
        return int(text), None, False
    if len(text) <= _PLAIN_MAX and text[:2] in ("0x", "0X") and text[2:].isalnum():
        return int(text, 16), None, False
    width: int | None = None
    signed = False
    m = _SIZED.match(text) if "w" in text or "s" in text else None
    if m:
        width, signed, text = _number(m.group(1), 10), m.group(2) == "s", m.group(3)
        if width is None or width > BITS_MAX:
            raise ValueError(f"the width of a literal must be at most {BITS_MAX} bits")
    digits = text.replace("_", "")
    base = _BASES.get(digits[:2].lower())
    if base is not None:
        digits = digits[2:]
    if not digits:
        raise ValueError("a literal must have digits")
    value = _number(digits, base or 10)
    if value is None:
        raise ValueError(f"a literal must fit in {BITS_MAX} bits")
    return value, width, signed


def _number(digits: str, base: int) -> int | None:
    """The value of `digits`, or None if it has more bits than BITS_MAX."""
    digits = digits.lstrip("0") or "0"
    if (len(digits) - 1) * (base.bit_length() - 1) > BITS_MAX:
        return None
    if base != 10:
        value = int(digits, base)
    else:
        value = 0
        for start in range(0, len(digits), _DIGITS_AT_ONCE):
            part = digits[start : start + _DIGITS_AT_ONCE]
            value = value * 10 ** len(part) + int(part)
    return value if value.bit_length() <= BITS_MAX else None
