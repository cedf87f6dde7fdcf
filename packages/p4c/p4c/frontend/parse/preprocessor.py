"""`#include`, `#define`, `#if` and their kin, on tokens, so that every token keeps the place it was written at."""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from common import plain_file
from p4c.frontend.cache import SOURCE_BYTES_MAX
from p4c.frontend.diagnostics import Diagnostics, SourceSpan, choices, count
from p4c.frontend.parse.condition import Condition, ConditionError
from p4c.frontend.parse.lexer import TOKENS_MAX, tokenize
from p4c.frontend.parse.tokens import (
    BITS,
    END,
    END_AT,
    ID,
    KIND,
    NEWLINE,
    PLACE,
    USE_AT,
    Token,
    Tokens,
    decode,
    text_of,
)

STANDARD_INCLUDE = Path(__file__).parents[1] / "include"
_INCLUDE_DEPTH_MAX = 64
_INCLUDE_COUNT_MAX = 1000
# Macros that use others twice double at every level: both bounds are far above what programs need. Uses fit in 16 bits.
_EXPANSION_MAX = 50_000
_MACRO_DEPTH_MAX = 256
_MACRO_COUNT_MAX = 10_000
_BRANCH_DEPTH_MAX = 256  # of #if
_PASTED_MAX = 1000  # tokens that ## makes: each adds to all texts, which are copied
_DIRECTIVE_TOKENS_MAX = 20_000  # the tokens of a directive are all made at once
_WORDS = "include define undef if ifdef ifndef elif else endif error warning pragma line"
_DIRECTIVES = _WORDS.split()


@dataclass(frozen=True, slots=True)
class Macro:
    """`parameters` is None for a macro without a parameter list."""

    name: str
    parameters: tuple[str, ...] | None
    body: array[int]
    pastes: bool = False  # it has a ##


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
    _out: array[int] = field(default_factory=lambda: array("Q"))
    _bytes: int = 0  # of all files so far, each as often as it was read; and their tokens
    _tokens: int = 0
    _depth: int = 0
    _expanded: int = 0  # tokens that macros took in and gave so far
    _pasted: dict[str, int | None] = field(default_factory=dict)  # made by ##

    def define(self, definitions: Mapping[str, str]) -> None:
        """Macros as `-D NAME=VALUE` gives them."""
        for name, value in definitions.items():
            self._bytes += len(value)
            if self._bytes > SOURCE_BYTES_MAX:
                return  # no file of the program can be read
            codes = tokenize(value, "<command line>", self.diagnostics).codes
            self.macros[name] = Macro(name, None, array("Q", (c for c in codes if c & KIND != NEWLINE)))

    def run(self, path: Path, shown: str | None = None) -> Tokens:
        """The program's tokens, ended by one of kind `end`. `shown` is the file name that diagnostics print."""
        self._folder = path.parent
        texts = self.diagnostics.texts
        start = len(texts.text)
        self._file(path, shown or str(path), None)
        self._out.append((self._out[-1] if self._out else start) & ~KIND | END)
        return Tokens(self._out, texts)

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
        codes = tokenize(text, shown, self.diagnostics, TOKENS_MAX - self._tokens).codes
        del text  # a part of all texts now
        self._bytes, self._tokens = self._bytes + size, self._tokens + len(codes)
        texts = self.diagnostics.texts
        branches: list[_Branch] = []
        start = 0
        pending = array("Q")
        for index, code in enumerate(codes):
            if code < NEWLINE or code & KIND != NEWLINE:
                continue
            line, start = codes[start:index], index + 1
            if line and text_of(line[0], texts) == "#":
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
        if plain_file.is_public(real) or any(real.is_relative_to(place.resolve()) for place in named):
            return False
        return not (real.is_relative_to(folder) and plain_file.read_by_writers(real, folder))

    def _flush(self, pending: array[int]) -> None:
        if pending:
            self.expand(pending, self._out)
            del pending[:]

    # --- directives ------------------------------------------------------------------------------------------------

    def _directive(self, codes: array[int], branches: list[_Branch], path: Path, shown: str) -> None:
        if len(codes) == 1:
            return
        word, *rest = decode(codes[1 : _DIRECTIVE_TOKENS_MAX + 1], self.diagnostics.texts)
        if len(codes) > _DIRECTIVE_TOKENS_MAX:
            message = f"a directive must have at most {_DIRECTIVE_TOKENS_MAX} tokens"
            self.diagnostics.last("preprocess", message, word.span)
        codes = codes[2:]
        name = word.text
        active = all(b.active for b in branches)
        if name in ("if", "ifdef", "ifndef"):
            value = False
            if active:
                value = self._condition(codes, word) if name == "if" else self._defined(rest, word) == (name == "ifdef")
            if len(branches) >= _BRANCH_DEPTH_MAX:
                message = f"conditionals must nest at most {_BRANCH_DEPTH_MAX} deep"
                self.diagnostics.last("preprocess", message, word.span)
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
                branch.active = branch.taken = name == "else" or self._condition(codes, word)
        elif not active:
            return
        elif name == "include":
            self._include(rest, word, path, shown)
        elif name == "define":
            self._define(codes, rest, word)
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
            m = re.search(r"<([^>]*)>", self.diagnostics.texts.line(shown, word.span.line) or "")
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
                is_file = candidate.exists() and not candidate.is_dir()
            except OSError:  # a name that no file can have
                continue
            if is_file:
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

    def _define(self, codes: array[int], rest: list[Token], word: Token) -> None:
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
        for place, token in enumerate(body):
            if token.text == "#":
                self.diagnostics.error("preprocess", "the # operator is not supported", token.span)
            if token.text == "##" and place in (0, len(body) - 1):
                self.diagnostics.error("preprocess", "## must have a token on each side", token.span)
                return
        if len(self.macros) >= _MACRO_COUNT_MAX and name not in self.macros:
            message = f"a program must define at most {_MACRO_COUNT_MAX} macros"
            self.diagnostics.last("preprocess", message, word.span)
        pastes = any(token.text == "##" for token in body)
        self.macros[name] = Macro(name, parameters, codes[len(rest) - len(body) :], pastes)

    # --- macro expansion -------------------------------------------------------------------------------------------

    def expand(self, codes: array[int], out: array[int], hidden: frozenset[str] = frozenset()) -> None:
        """Add `codes` to `out`, macros replaced. Tokens of a macro's text keep their place and are told where the macro
        was used."""
        texts, done = self.diagnostics.texts, 0
        text = texts.text
        for index, code in enumerate(codes):
            if code & KIND != ID or index < done:
                continue
            name = text[code & PLACE : code >> END_AT & PLACE]
            macro = self.macros.get(name)
            if macro is None or name in hidden or not self._may_expand(code, len(macro.body), hidden):
                continue
            bound: dict[str, array[int]] = {}
            given: dict[str, array[int]] = {}
            commas, behind = array("I"), index + 1
            if macro.parameters is not None:
                if behind >= len(codes) or text_of(codes[behind], texts) != "(":
                    continue
                commas, behind = self._arguments(codes, behind + 1, code)
            out.extend(codes[done:index])
            done = behind
            if macro.parameters is not None:
                number = 0 if not macro.parameters and commas[1] - commas[0] == 1 else len(commas) - 1
                if number != len(macro.parameters):
                    message = f"macro {name} takes {count(len(macro.parameters), 'argument')}, not {number}"
                    self.diagnostics.error("preprocess", message, self._span(code))
                    continue
                if not self._may_expand(code, behind - index - 1, hidden):
                    continue
                for place, parameter in enumerate(macro.parameters):
                    bound[parameter] = array("Q")
                    given[parameter] = codes[commas[place] + 1 : commas[place + 1]]
                    self.expand(given[parameter], bound[parameter], hidden)
            use = len(texts.uses) << USE_AT
            texts.uses.append(code)
            body = array("Q", (c if c >> USE_AT else c | use for c in macro.body))
            if bound or macro.pastes:
                words = [text_of(b, texts) for b in body]
                size = sum(max(len(bound.get(word, ())), len(given.get(word, ()))) for word in words)
                if not self._may_expand(code, size, hidden):
                    continue
                body = self._replaced(body, words, bound, given)
            self.expand(body, out, hidden | {name})
        out.extend(codes[done:] if done else codes)

    def _replaced(
        self, body: array[int], words: list[str], bound: dict[str, array[int]], given: dict[str, array[int]]
    ) -> array[int]:
        """A macro's text with its arguments: as they were `given` beside ##, which joins two tokens, else `bound`."""
        out = array("Q")
        place = 0
        while place < len(body):
            if words[place + 1 : place + 2] != ["##"]:
                out.extend(bound.get(words[place], (body[place],)))
                place += 1
                continue
            left = array("Q", given.get(words[place], (body[place],)))
            while words[place + 1 : place + 2] == ["##"]:
                sign, place = body[place + 1], place + 2
                right = array("Q", given.get(words[place], (body[place],)))
                if left and right and (joined := self._joined(left[-1], right[0], sign)) is not None:
                    right[0] = joined
                    left.pop()
                left.extend(right)
            out.extend(left)
            place += 1
        return out

    def _joined(self, left: int, right: int, sign: int) -> int | None:
        """One token of two; its place is a text of its own, and the macro's use tells where it comes from. None where
        they make no token: p4c's preprocessor leaves these as they are."""
        texts = self.diagnostics.texts
        text = text_of(left, texts) + text_of(right, texts)
        if text not in self._pasted:
            if len(self._pasted) >= _PASTED_MAX:
                message = f"a program must make at most {_PASTED_MAX} different tokens with ##"
                self.diagnostics.last("preprocess", message, self._span(sign))
            file, secret = f"<## {len(self._pasted) + 1}>", self.diagnostics.secret
            if any(texts.place(code & PLACE)[0] in secret for code in (left, right)):
                secret.add(file)
            token, *rest = tokenize(text, file, self.diagnostics).codes
            self._pasted[text] = token if len(rest) == 1 else None
        made = self._pasted[text]
        return None if made is None else made | sign >> USE_AT << USE_AT

    def _may_expand(self, macro: int, size: int, hidden: frozenset[str]) -> bool:
        """Count `size` more tokens of macros. False, with a complaint the first time, where that is too much."""
        if self._expanded > _EXPANSION_MAX:
            return False
        self._expanded += max(size, 1)
        if len(hidden) >= _MACRO_DEPTH_MAX:
            self.diagnostics.error("preprocess", f"macros must nest at most {_MACRO_DEPTH_MAX} deep", self._span(macro))
            return False
        if self._expanded > _EXPANSION_MAX:
            message = f"macros must expand to at most {_EXPANSION_MAX} tokens in all"
            self.diagnostics.error("preprocess", message, self._span(macro))
        return self._expanded <= _EXPANSION_MAX

    def _span(self, code: int) -> SourceSpan:
        return decode([code], self.diagnostics.texts)[0].span

    def _arguments(self, codes: array[int], index: int, macro: int) -> tuple[array[int], int]:
        """Where arguments end that begin at `index`: their `(`, the commas between them, and what closes the last."""
        ends = array("I", [index - 1])
        depth = 1
        while index < len(codes):
            text = text_of(codes[index], self.diagnostics.texts)
            depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
            if depth == 0 or (text == "," and depth == 1):
                ends.append(index)
            index += 1
            if depth == 0:
                return ends, index
        name = text_of(macro, self.diagnostics.texts)
        self.diagnostics.error("preprocess", f"the arguments of macro {name} are not closed", self._span(macro))
        ends.append(index)
        return ends, index

    # --- conditions of #if -------------------------------------------------------------------------------------------

    def _condition(self, codes: array[int], word: Token) -> bool:
        try:
            out = array("Q")
            self.expand(self._without_defined(codes, word), out)
            return Condition(decode(out, self.diagnostics.texts), word).value() != 0
        except ConditionError as error:
            self.diagnostics.error("preprocess", str(error), error.span)
            return False

    def _without_defined(self, codes: array[int], word: Token) -> array[int]:
        """`codes` with 0 or 1 in the place of each `defined NAME` or `defined(NAME)`."""
        done = array("Q")
        tokens = iter(zip(codes, decode(codes, self.diagnostics.texts), strict=True))
        for code, token in tokens:
            if token.text != "defined":
                done.append(code)
                continue
            _, name = next(tokens, (code, token))
            bracket = name if name.text == "(" else None
            if bracket is not None:
                _, name = next(tokens, (code, token))
            if name.kind != "id" or name is token:
                raise ConditionError(f"defined in #{word.text} needs the name of a macro", token.span)
            if bracket is not None and next(tokens, (code, token))[1].text != ")":
                raise ConditionError(f"expected ')' to close this '(' in #{word.text}", bracket.span)
            done.append(code & ~KIND | BITS[name.text in self.macros])
        return done
