"""Errors and warnings: values with a place, a phase and a message, printed with a caret under the culprit."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from common.terminal.printable import printable
from p4c.frontend.texts import Texts

if TYPE_CHECKING:
    from p4c.model.source import SourceInfo

_SHOWN_MAX = 100  # messages
_KEPT_MAX = 1000  # errors, behind which the program is not read on; and warnings
_LINE_MAX = 240  # characters of a source line: of a longer one, those around the place
_SECRET = (
    "this must be the text of a program. No line of it is shown: only root may read the file, and it lies outside the"
    " program's folder and every -I folder"
)
PHASES = ("preprocess", "lex", "parse", "names", "types", "target", "lint")


@dataclass(slots=True, unsafe_hash=True)
class SourceSpan:
    """A place in a source file. Line and column count from 1. Never changed: every token makes one, and a class that
    Python keeps from changing takes four times as long to make.

    `via` tells where a macro was used, for a place in the macro's text.
    """

    file: str
    line: int
    column: int
    length: int = 1
    via: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


NOWHERE = SourceSpan("<program>", 0, 0)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One complaint. `phase` is one of PHASES; `target` means valid P4 that this compiler or BMv2 cannot carry out, and
    `lint` what is hardly meant."""

    phase: str
    severity: str  # "error" or "warning"
    message: str
    span: SourceSpan
    notes: tuple[str, ...] = ()


class CompileError(RuntimeError):
    """The program was refused; `diagnostics` says why, and `str()` is the printed form."""

    def __init__(self, diagnostics: list[Diagnostic], rendered: str) -> None:
        super().__init__(rendered)
        self.diagnostics = diagnostics


@dataclass(slots=True)
class Diagnostics:
    """Collects complaints and knows the source lines to print them with.

    Nothing is told of the content of files in `secret`, but that they are no programs.
    """

    items: list[Diagnostic] = field(default_factory=list)
    texts: Texts = field(default_factory=Texts)
    secret: set[str] = field(default_factory=set)
    _known: set[Diagnostic] = field(default_factory=set)
    _kept: Counter[str] = field(default_factory=Counter)
    _left_out: int = 0

    def error(self, phase: str, message: str, span: SourceSpan, *notes: str) -> None:
        self._add(Diagnostic(phase, "error", message, span, tuple(n for n in notes if n)))

    def last(self, phase: str, message: str, span: SourceSpan) -> None:
        """An error behind which the program is read no further: raises CompileError."""
        self.error(phase, message, span)
        self.stop_on_errors()

    def warning(self, phase: str, message: str, span: SourceSpan, *notes: str) -> None:
        self._add(Diagnostic(phase, "warning", message, span, tuple(n for n in notes if n)))

    def _add(self, item: Diagnostic) -> None:
        """Raises CompileError at the last error that is kept."""
        if item.span.file in self.secret:
            item = Diagnostic(item.phase, item.severity, _SECRET, SourceSpan(item.span.file, 1, 1))
        if item in self._known:
            return
        if self._kept[item.severity] >= _KEPT_MAX:
            self._left_out += 1
            return
        self._known.add(item)
        self.items.append(item)
        self._kept[item.severity] += 1
        if self._kept["error"] >= _KEPT_MAX:
            self.stop_on_errors()

    def source(self, span: SourceSpan) -> SourceInfo | None:
        """A place as the model keeps it, with its line."""
        from p4c.model.source import SourceInfo  # a result from the cache does without the model

        if not span.line:
            return None
        text = self.texts.line(span.file, span.line) or ""
        return SourceInfo(span.file, span.line, span.column, text.strip()[:80])

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self.items if d.severity == "error"]

    def render(self) -> str:
        """Messages in their order; where these are too many, errors before warnings."""
        items = self.items
        if len(items) > _SHOWN_MAX:
            items = sorted(items, key=lambda item: item.severity != "error")
        shown = [self.render_one(item) for item in items[:_SHOWN_MAX]]
        more = len(self.items) - len(shown) + self._left_out
        if more:
            shown.append(f"and {count(more, 'more message')}")
        if self._kept["error"] >= _KEPT_MAX:
            shown.append(f"the program is read no further: it has {_KEPT_MAX} errors")
        return "\n".join(shown)

    def render_one(self, item: Diagnostic) -> str:
        out = [f"{item.span}: {item.severity}[{item.phase}]: {item.message}"]
        line = self.texts.line(item.span.file, item.span.line)
        if line is not None and item.span.file not in self.secret:
            text, column = line.expandtabs(1), item.span.column
            if len(text) > _LINE_MAX:
                start = max(0, column - 1 - _LINE_MAX // 2)
                text, column = text[start : start + _LINE_MAX], column - start
            width = max(1, min(item.span.length, len(text) - column + 1))
            out.append("    " + text)
            out.append("    " + " " * (column - 1) + "^" + "~" * (width - 1))
        if item.span.via:
            out.append(f"  note: {item.span.via}")
        out.extend(f"  note: {note}" for note in item.notes)
        return "\n".join(map(printable, out))

    def stop_on_errors(self) -> None:
        """Raise CompileError if anything so far was an error. Warnings of `lint` are left out then."""
        if self.errors:
            self.items = [d for d in self.items if d.phase != "lint"]
            raise CompileError(self.items, self.render())


def count(number: int, noun: str) -> str:
    """`1 argument`, `2 arguments`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def brief(number: int) -> str:
    """A number for a message: large ones as the first and last hexadecimal digits."""
    if number.bit_length() <= 64:
        return str(number)
    digits = f"{abs(number):x}"
    return f"{'-' if number < 0 else ''}0x{digits[:8]}…{digits[-4:]} ({number.bit_length()} bits)"


def article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def choices(name: str, valid: Iterable[str], what: str = "valid choices") -> str:
    """A note that lists what could have been written, the closest first."""
    names = sorted({v for v in valid if v and not v.startswith("__")})
    if not names:
        return f"{what}: none"
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    ordered = close + [n for n in names if n not in close]
    shown = ", ".join(ordered[:16])
    more = f", and {len(ordered) - 16} more" if len(ordered) > 16 else ""
    return f"{what}: {shown}{more}"
