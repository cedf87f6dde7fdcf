"""`#include`, `#define`, `#if` and their kin, on tokens, so that every token keeps the place it was written at."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from common import plain_file
from p4c.frontend.cache import SOURCE_BYTES_MAX
from p4c.frontend.diagnostics import Diagnostics, SourceSpan, choices, count
from p4c.frontend.parse.condition import Condition, ConditionError
from p4c.frontend.parse.lexer import TOKENS_MAX, Token, tokenize

STANDARD_INCLUDE = Path(__file__).parents[1] / "include"
_INCLUDE_DEPTH_MAX = 64
_INCLUDE_COUNT_MAX = 1000
# Macros that use others twice double at every level: both bounds are far above what programs need.
_EXPANSION_MAX = 50_000
_MACRO_DEPTH_MAX = 256
_WORDS = "include define undef if ifdef ifndef elif else endif error warning pragma line"
_DIRECTIVES = _WORDS.split()


@dataclass(frozen=True, slots=True)
class Macro:
    """`parameters` is None for a macro without a parameter list."""

    name: str
    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]


@dataclass(slots=True)
class _Branch:
    """An open #if: whether this branch is read, whether an earlier one was, and where it began."""

    active: bool
    taken: bool
    span: SourceSpan
    seen_else: bool = False


@dataclass(slots=True)
class Preprocessor:
    """Reads `path` and everything it includes into one list of tokens.

    `read` lists every file that was used and `missing` every place where an include was looked for in vain: together
    they tell whether a cached result still stands. `includable` are the files that an include may lead to, as it finds
    them; None: any file.
    """

    diagnostics: Diagnostics
    include_paths: tuple[Path, ...] = ()
    includable: frozenset[Path] | None = None
    macros: dict[str, Macro] = field(default_factory=dict)
    read: list[Path] = field(default_factory=list)
    missing: list[Path] = field(default_factory=list)
    _folder: Path = field(default_factory=Path)
    _out: list[Token] = field(default_factory=list)
    _bytes: int = 0  # of all files so far, each as often as it was read; and their tokens
    _tokens: int = 0
    _depth: int = 0
    _expanded: int = 0  # tokens that macros took in and gave so far

    def define(self, definitions: Mapping[str, str]) -> None:
        """Macros as `-D NAME=VALUE` gives them."""
        for name, value in definitions.items():
            tokens = [t for t in tokenize(value, "<command line>", self.diagnostics) if t.kind != "newline"]
            self.macros[name] = Macro(name, None, tuple(tokens))

    def run(self, path: Path, shown: str | None = None) -> list[Token]:
        """The program's tokens, ended by one of kind `end`. `shown` is the file name that diagnostics print."""
        self._folder = path.parent
        self._file(path, shown or str(path), None)
        span = self._out[-1].span if self._out else SourceSpan(shown or str(path), 1, 1)
        return [*self._out, Token("end", "end of file", span)]

    # --- files and lines -------------------------------------------------------------------------------------------

    def _file(self, path: Path, shown: str, span: SourceSpan | None) -> None:
        at = span or SourceSpan(shown, 1, 1)
        try:
            text, size = self._text(path)
        except plain_file.TooLongError:
            message = f"a program must have at most {SOURCE_BYTES_MAX} bytes, with all that it includes"
            self.diagnostics.error("preprocess", f"cannot read {shown}: {message}", at)
            return
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not UTF-8 text"
            self.diagnostics.error("preprocess", f"cannot read {shown}: {reason}", at)
            return
        self.read.append(path)
        if self._is_secret(path):
            self.diagnostics.secret.add(shown)
        tokens = tokenize(text, shown, self.diagnostics, TOKENS_MAX - self._tokens)
        self._bytes, self._tokens = self._bytes + size, self._tokens + len(tokens)
        branches: list[_Branch] = []
        start = 0
        pending: list[Token] = []
        for index, token in enumerate(tokens):
            if token.kind != "newline":
                continue
            line, start = tokens[start:index], index + 1
            if line and line[0].text == "#" and line[0].first:
                self._flush(pending)
                self._directive(line, branches, path, shown)
            elif all(b.active for b in branches):
                pending.extend(line)
        self._flush(pending)
        for branch in branches:
            self.diagnostics.error("preprocess", "this conditional has no #endif", branch.span)

    def _text(self, path: Path) -> tuple[str, int]:
        """The file's text, and its size in bytes. OSError, UnicodeDecodeError, TooLongError."""
        data = plain_file.read_up_to(path, SOURCE_BYTES_MAX - self._bytes)
        return data.decode().replace("\r\n", "\n").replace("\r", "\n"), len(data)

    def _is_secret(self, path: Path) -> bool:
        """Whether the program's author may be one who may not read the file. No message shows such a file's text.

        The author may be each user who may write the program's folder; root answers for the folders that it names.
        """
        if os.geteuid() or self.includable is not None:
            return False
        real = path.resolve()
        folder, named = self._folder.resolve(), (*self.include_paths, STANDARD_INCLUDE)
        if plain_file.is_public(real) or any(real.is_relative_to(one.resolve()) for one in named):
            return False
        return not (real.is_relative_to(folder) and plain_file.read_by_writers(real, folder))

    def _flush(self, pending: list[Token]) -> None:
        if pending:
            self._out.extend(self.expand(pending))
            pending.clear()

    # --- directives ------------------------------------------------------------------------------------------------

    def _directive(self, line: list[Token], branches: list[_Branch], path: Path, shown: str) -> None:
        if len(line) == 1:
            return
        word, rest = line[1], line[2:]
        name = word.text
        active = all(b.active for b in branches)
        if name in ("if", "ifdef", "ifndef"):
            value = False
            if active:
                value = self._condition(rest, word) if name == "if" else self._defined(rest, word) == (name == "ifdef")
            branches.append(_Branch(active and value, value or not active, word.span))
        elif name in ("elif", "else", "endif"):
            if not branches:
                self.diagnostics.error("preprocess", f"#{name} without an #if before it", word.span)
                return
            branch = branches[-1]
            if name == "endif":
                branches.pop()
                return
            if branch.seen_else:
                self.diagnostics.error("preprocess", f"#{name} after the #else of the same #if", word.span)
            branch.seen_else = branch.seen_else or name == "else"
            if branch.taken:
                branch.active = False
            else:
                branch.active = branch.taken = name == "else" or self._condition(rest, word)
        elif not active:
            return
        elif name == "include":
            self._include(rest, word, path, shown)
        elif name == "define":
            self._define(rest, word)
        elif name == "undef":
            if rest:
                self.macros.pop(rest[0].text, None)
        elif name in ("error", "warning"):
            text = " ".join(t.text for t in rest)
            (self.diagnostics.error if name == "error" else self.diagnostics.warning)("preprocess", text, word.span)
        elif name not in ("pragma", "line"):
            self.diagnostics.error("preprocess", f"unknown directive #{name}", word.span, choices(name, _DIRECTIVES))

    def _defined(self, rest: list[Token], word: Token) -> bool:
        if not rest or rest[0].kind != "id":
            self.diagnostics.error("preprocess", f"#{word.text} needs the name of a macro", word.span)
            return False
        return rest[0].text in self.macros

    def _include(self, rest: list[Token], word: Token, path: Path, shown: str) -> None:
        if rest and rest[0].kind == "str":
            name, places = rest[0].text[1:-1], [path.parent, *self.include_paths, STANDARD_INCLUDE]
        elif rest and rest[0].text == "<" and rest[-1].text == ">":
            # The name between the brackets was cut into tokens; take it from the source line again.
            source = self.diagnostics.lines[shown][word.span.line - 1]
            m = re.search(r"<([^>]*)>", source)
            name, places = m.group(1) if m else "", [*self.include_paths, STANDARD_INCLUDE]
        else:
            self.diagnostics.error("preprocess", '#include needs "file" or <file>', word.span)
            return
        if len(self.read) > _INCLUDE_COUNT_MAX:
            message = f"a program must include at most {_INCLUDE_COUNT_MAX} files (a file counts each time)"
            self.diagnostics.error("preprocess", message, word.span)
            return
        if self._depth >= _INCLUDE_DEPTH_MAX:
            self.diagnostics.error("preprocess", f"includes nest deeper than {_INCLUDE_DEPTH_MAX} files", word.span)
            return
        for place in places:
            candidate = place / name
            if self.includable is not None and candidate not in self.includable:
                continue
            try:
                found = candidate.exists() and not candidate.is_dir()
            except OSError:  # a name that no file can have
                continue
            if found:
                beside = str(Path(shown).parent / name) if place == path.parent else str(candidate)
                self._depth += 1
                self._file(candidate, beside if place != STANDARD_INCLUDE else f"<{name}>", word.span)
                self._depth -= 1
                return
            self.missing.append(candidate)
        looked = ", ".join(str(p) for p in places[:-1]) or "nowhere else"
        shipped = sorted(p.name for p in STANDARD_INCLUDE.glob("*.p4"))
        self.diagnostics.error(
            "preprocess",
            f"cannot find the file {name!r} to include",
            rest[0].span,
            f"looked in: {looked}; shipped with the compiler: {', '.join(shipped)}",
        )

    def _define(self, rest: list[Token], word: Token) -> None:
        if not rest or rest[0].kind != "id":
            self.diagnostics.error("preprocess", "#define needs a name", word.span)
            return
        name, body = rest[0].text, rest[1:]
        parameters: tuple[str, ...] | None = None
        if body and body[0].text == "(" and body[0].glued:
            close = next((i for i, t in enumerate(body) if t.text == ")"), None)
            if close is None:
                self.diagnostics.error("preprocess", f"the parameter list of {name} is not closed", body[0].span)
                return
            parameters = tuple(t.text for t in body[1:close] if t.text != ",")
            body = body[close + 1 :]
        for token in body:
            if token.text in ("#", "##"):
                self.diagnostics.error("preprocess", f"the {token.text} operator is not supported", token.span)
        self.macros[name] = Macro(name, parameters, tuple(body))

    # --- macro expansion -------------------------------------------------------------------------------------------

    def expand(self, tokens: Iterable[Token], hidden: frozenset[str] = frozenset()) -> list[Token]:
        """Replace macros. Tokens of a macro's text keep their place and are told where the macro was used."""
        tokens = list(tokens)
        if not any(t.kind == "id" and t.text in self.macros for t in tokens):
            return tokens
        out: list[Token] = []
        index = 0
        while index < len(tokens):
            token = tokens[index]
            macro = self.macros.get(token.text) if token.kind == "id" and token.text not in hidden else None
            index += 1
            if macro is None or not self._may_expand(token, len(macro.body), hidden):
                out.append(token)
                continue
            body = [t.used_at(token) for t in macro.body]
            if macro.parameters is not None:
                if index >= len(tokens) or tokens[index].text != "(":
                    out.append(token)
                    continue
                before = index
                arguments, index = self._arguments(tokens, index + 1, token)
                if len(arguments) == 1 and not arguments[0] and not macro.parameters:
                    arguments = []
                if len(arguments) != len(macro.parameters):
                    message = (
                        f"macro {macro.name} takes {count(len(macro.parameters), 'argument')}, not {len(arguments)}"
                    )
                    self.diagnostics.error("preprocess", message, token.span)
                    continue
                if not self._may_expand(token, index - before, hidden):
                    continue
                bound = dict(zip(macro.parameters, (self.expand(a, hidden) for a in arguments), strict=True))
                if not self._may_expand(token, sum(len(bound.get(b.text, ())) for b in body), hidden):
                    continue
                body = [t for b in body for t in bound.get(b.text, [b])]
            out.extend(self.expand(body, hidden | {macro.name}))
        return out

    def _may_expand(self, macro: Token, size: int, hidden: frozenset[str]) -> bool:
        """Count `size` more tokens of macros. False, with a complaint the first time, where that is too much."""
        if self._expanded > _EXPANSION_MAX:
            return False
        self._expanded += max(size, 1)
        if len(hidden) >= _MACRO_DEPTH_MAX:
            self.diagnostics.error("preprocess", f"macros must nest at most {_MACRO_DEPTH_MAX} deep", macro.span)
            return False
        if self._expanded > _EXPANSION_MAX:
            message = f"macros must expand to at most {_EXPANSION_MAX} tokens in all"
            self.diagnostics.error("preprocess", message, macro.span)
        return self._expanded <= _EXPANSION_MAX

    def _arguments(self, tokens: list[Token], index: int, macro: Token) -> tuple[list[list[Token]], int]:
        arguments: list[list[Token]] = [[]]
        depth = 1
        while index < len(tokens):
            token = tokens[index]
            index += 1
            depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
            if depth == 0:
                return arguments, index
            if token.text == "," and depth == 1:
                arguments.append([])
            else:
                arguments[-1].append(token)
        self.diagnostics.error("preprocess", f"the arguments of macro {macro.text} are not closed", macro.span)
        return arguments, index

    # --- conditions of #if -------------------------------------------------------------------------------------------

    def _condition(self, line: list[Token], word: Token) -> bool:
        try:
            tokens = self.expand(self._without_defined(line, word))
            return Condition(tokens, word).value() != 0
        except ConditionError as error:
            self.diagnostics.error("preprocess", str(error), error.span)
            return False

    def _without_defined(self, line: list[Token], word: Token) -> list[Token]:
        """`line` with 0 or 1 in the place of each `defined NAME` or `defined(NAME)`."""
        made: list[Token] = []
        tokens = iter(line)
        for token in tokens:
            if token.text != "defined":
                made.append(token)
                continue
            name = next(tokens, token)
            bracket = name if name.text == "(" else None
            if bracket is not None:
                name = next(tokens, token)
            if name.kind != "id" or name is token:
                raise ConditionError(f"defined in #{word.text} needs the name of a macro", token.span)
            if bracket is not None and next(tokens, token).text != ")":
                raise ConditionError(f"expected ')' to close this '(' in #{word.text}", bracket.span)
            made.append(Token("int", "1" if name.text in self.macros else "0", token.span))
        return made
