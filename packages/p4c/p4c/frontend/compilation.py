"""All phases in a row, with every intermediate form kept."""

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from common.garbage import not_collected
from p4c.frontend.cache import Compiled
from p4c.frontend.check.context import CheckContext
from p4c.frontend.check.program import check
from p4c.frontend.diagnostics import Diagnostics, SourceSpan
from p4c.frontend.draft import Draft
from p4c.frontend.emit.p4info import p4info_text
from p4c.frontend.emit.program import finish
from p4c.frontend.lint.program import lint
from p4c.frontend.lower.program import lower
from p4c.frontend.parse import ast
from p4c.frontend.parse.preprocessor import Preprocessor
from p4c.frontend.parse.program import parse
from p4c.frontend.parse.tokens import Tokens
from p4c.model import Program, document

_RECURSION_MAX = 20_000


@dataclass(slots=True)
class Compilation:
    """One run with every intermediate form, for tests. Stops at the first phase that has errors."""

    path: Path
    include_paths: Sequence[Path] = ()
    definitions: Mapping[str, str] = field(default_factory=dict)
    includable: frozenset[Path] | None = None
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    preprocessor: Preprocessor | None = None
    tokens: Tokens | None = None
    program: ast.P4Program | None = None
    checked: CheckContext | None = None
    draft: Draft | None = None
    lowered: Program | None = None

    @contextlib.contextmanager
    def _phase(self) -> Iterator[None]:
        """Every phase recurses over what the programmer nested: allow for much, and say so beyond that.

        Errors end the phase with CompileError.
        """
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, _RECURSION_MAX))
        try:
            yield
        except RecursionError:
            at = self.tokens[len(self.tokens) - 1].span if self.tokens else SourceSpan(str(self.path), 1, 1)
            self.diagnostics.error("parse", "this program nests expressions or statements too deeply", at)
        finally:
            sys.setrecursionlimit(before)
        self.diagnostics.stop_on_errors()

    def read(self) -> None:
        with self._phase():
            self.preprocessor = Preprocessor(self.diagnostics, tuple(self.include_paths), self.includable)
            self.preprocessor.define(self.definitions)
            self.tokens = self.preprocessor.run(self.path)

    def parse(self) -> None:
        self.read()
        with self._phase():
            assert self.tokens is not None
            self.program = parse(self.tokens, self.diagnostics)

    def check(self) -> None:
        self.parse()
        with self._phase():
            assert self.program is not None
            self.checked = check(self.program, self.diagnostics)

    def lower(self) -> None:
        self.check()
        with self._phase():
            assert self.program is not None
            assert self.checked is not None
            self.draft = draft = lower(self.program, self.checked, self.diagnostics, str(self.path))
        with self._phase():
            self.lowered = finish(draft, self.diagnostics)

    @not_collected()
    def run(self) -> Compiled:
        self.lower()
        with self._phase():
            assert self.lowered is not None
            assert self.draft is not None
            lint(self.lowered, self.draft, self.diagnostics)
            made = document(self.lowered)
            p4info = p4info_text(self.draft)
        return Compiled(made, p4info, self.diagnostics.render())
