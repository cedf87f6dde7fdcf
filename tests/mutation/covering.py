"""Which tests run which lines of a room, measured once by coverage.py, so that a mutant meets tests that can see it.

As a plugin of pytest (`-p tests.mutation.covering`) it measures a run of the unchanged tests. What a fixture or an
import runs counts for every test of its file, because later tests may use the result without running it again.
"""

from __future__ import annotations

import ast
import json
import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import coverage
import pytest

from tests.mutation.mutants import Mutant

MODULES, RESULT = "MRCLAB_COVERING_MODULES", "MRCLAB_COVERING_RESULT"  # files of the room, and where to write


@dataclass(frozen=True)
class Covering:
    """Tests of a room by the lines that they run. A name without `::` is a file, and means all of its tests."""

    seconds: dict[str, float]  # what each test took
    lines: dict[str, dict[str, list[str]]]  # by module and line

    @classmethod
    def read(cls, path: Path) -> Covering:
        return cls(**json.loads(path.read_text()))

    def of(self, mutant: Mutant, source: bytes) -> list[str]:
        """Tests that run the mutant's statement, the quickest first; none if the measurement cannot say which.

        A line that runs when its module is imported is seen by every test that runs anything of the module.
        """
        lines = self.lines.get(mutant.path, {})
        names = {name for line in statement_lines(source, mutant.line) for name in lines.get(str(line), ())}
        if "" in names:
            names = {name for tests in lines.values() for name in tests}
        found = {test for test in self.seconds if test in names or test.split("::")[0] in names}
        return sorted(found, key=lambda test: (self.seconds[test], test))


def statement_lines(source: bytes, line: int) -> range:
    """The lines of the smallest statement at a line; of a compound one, those before its body."""
    found = range(line, line + 1)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
            body = getattr(node, "body", None)
            end = body[0].lineno if body and body[0].lineno > node.lineno else (node.end_lineno or 0) + 1
            if line < end:
                found = range(node.lineno, end)  # `walk` comes to inner statements later
    return found


class Measurement:
    """Coverage of one run of pytest by test."""

    def __init__(self, modules: Iterable[str], result: Path) -> None:
        self.result = result
        self.seconds: dict[str, float] = defaultdict(float)
        self.coverage = coverage.Coverage(data_file=None, config_file=False, include=list(modules))
        self.coverage.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.coverage.switch_context(nodeid.split("::")[0])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> object:
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context(item.nodeid.split("::")[0])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        lines = {
            str(Path(file).relative_to(Path.cwd())): {
                str(line): sorted(tests) for line, tests in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        self.result.write_text(json.dumps({"seconds": self.seconds, "lines": lines}))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Measurement(os.environ[MODULES].split(os.pathsep), Path(os.environ[RESULT])))
