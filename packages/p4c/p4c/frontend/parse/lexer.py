"""Characters to tokens (P4_16 specification, section 6.3), line structure kept for the preprocessor."""

import re
from array import array

from p4c.frontend.diagnostics import Diagnostics, SourceSpan
from p4c.frontend.parse.tokens import END_AT, GLUED_AT, ID, INT, NEWLINE, OP, PLACE, STR, ZERO, Tokens, text_of
from p4c.frontend.texts import Texts

# `>>` is not a token: in `bit<bit<8>>` it closes two brackets. The parser joins adjacent `>` where a shift may stand.
_LONG = "&&& |+| |-| ... << && || == != <= >= ++ .. += -= *= &= |= ^= ##"
# Possessive: a pattern that may give characters back remembers each, 300 bytes for one of a string. A match begins
# with the blanks before the token, and the end of the text counts as one.
_TOKEN = re.compile(
    r"(?:[ \t\r\f]++|\\\r?\n|//[^\n]*+|/\*.*?\*/)*+(?:"
    r"(?P<id>[A-Za-z_][A-Za-z0-9_]*+)"
    r"|(?P<int>\d+[ws](?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|0[dD][0-9_]+|[0-9_]+)"
    r"|0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|0[dD][0-9_]+|\d[0-9_]*+)"
    r'|(?P<str>"(?:[^"\\]++|\\.)*+")'
    r"|(?P<op>[{}()\[\],;:?@~]|(?!/\*)(?:" + "|".join(map(re.escape, _LONG.split())) + r"|[<>.=+\-*/%&|^!#]))"
    r"|(?P<newline>\n)"
    r'|(?P<open>/\*)|(?P<string>")|(?P<odd>.)|(?P<end>\Z))',
    re.DOTALL,
)
_KINDS = (0, ID, INT, STR, OP)
_NEWLINE, _OPEN, _STRING, _ODD = range(5, 9)  # further groups of the pattern

_ODD_MAX, _BODY_MAX = 1000, 1000  # characters without a meaning that are looked at, tokens before each
TOKENS_MAX = 500_000  # of a program: what is made of each takes up to 600 bytes
BITS_MAX = 65535  # of a type, and of a number without a width


def tokenize(text: str, file: str, diagnostics: Diagnostics, most: int = TOKENS_MAX) -> Tokens:
    """All tokens of one file, with a `newline` behind the last of each line. Unknown characters are reported and
    skipped; behind `most` tokens the rest is."""
    texts = diagnostics.texts
    base = texts.add(file, text)
    codes = array("Q")
    add, kinds = codes.append, _KINDS
    before = -1  # where the token before ends
    first = True  # no token of the line so far

    over = -1  # where the first string of several lines begins
    odd = 0  # characters without a meaning so far

    def error(message: str, start: int, length: int = 1, note: str = "") -> None:
        _, line, line_start, _ = texts.place(base + start)
        diagnostics.error("lex", message, SourceSpan(file, line, base + start - line_start + 1, length), note)

    if len(texts.text) > PLACE:
        error(f"a program must have at most {PLACE} characters, with all it includes", 0)
        diagnostics.stop_on_errors()

    for m in _TOKEN.finditer(text):
        group = m.lastindex or 0
        start, end = m.span(group)
        if group < _NEWLINE:
            kind = kinds[group]
            if kind == STR and over < 0 and "\n" in m[group]:
                over = start
            if kind == INT and not (end - start <= _PLAIN_MAX and m[group].isdecimal()):
                try:
                    integer(m[group])
                except ValueError as wrong:
                    error(str(wrong), start, end - start)
                    kind = ZERO
            if len(codes) >= most:
                message = f"a program must have at most {TOKENS_MAX} tokens, with all it includes"
                error(message, start, end - start)
                break
            add(base + start | base + end << END_AT | kind | (start == before) << GLUED_AT)
            before, first = end, False
        elif group == _NEWLINE:
            if not first:
                add(base + start | base + end << END_AT | NEWLINE)
                first = True
        elif group == _OPEN:
            error("this comment is never closed", start, 2)
            break
        elif group == _STRING:
            line = texts.place(base + over)[1] if over >= 0 else 0
            error("this string is never closed", start, 1, open_string_note(line) if line else "")
            break
        elif group == _ODD and (odd := odd + 1) <= _ODD_MAX and _in_annotation(codes, texts):
            add(base + start | base + end << END_AT | OP)
            first = False
        elif group == _ODD:
            error(f"the character {text[start]!r} has no meaning in P4", start)
    end = base + len(text)
    add(end | end + 1 << END_AT | NEWLINE)
    return Tokens(codes, texts)


def _in_annotation(codes: "array[int]", texts: Texts) -> bool:
    """Whether the next token is in the body of an annotation, `@name(…)`, which is free text."""
    depth = 0
    recent = [word for code in codes[-_BODY_MAX:] if (word := text_of(code, texts)) != "\n"]
    for place in range(len(recent) - 1, 1, -1):
        depth += (recent[place] == ")") - (recent[place] == "(")
        if depth < 0 and recent[place - 2] == "@":
            return True
        depth = max(depth, 0)
    return False


def open_string_note(line: int) -> str:
    return f"the string that begins on line {line} goes on over line ends: is its closing quote missing?"


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
