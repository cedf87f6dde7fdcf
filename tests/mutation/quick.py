"""Plugin of pytest for runs that only ask whether any test fails.

Hypothesis draws the same examples each time and shrinks none. Files of tests that have killed many mutants in little
time come first.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import Phase, settings

RECORD = "MRCLAB_MUTANTS_RECORD"  # names a file: kills and seconds of each file of tests
Record = dict[str, dict[str, float]]


def read(path: Path) -> Record:
    """Kills and seconds so far."""
    return json.loads(path.read_text()) if path.exists() else {"kills": {}, "seconds": {}}


def worth(record: Record, file: str) -> float:
    """Kills per second; a file that has killed nothing yet is worth trying when it is quick."""
    return (record["kills"].get(file, 0) + 0.2) / (record["seconds"].get(file, 0) + 0.2)


class Quick:
    """Orders the tests of one run, and counts what they took and which file killed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.before = read(path)
        self.seconds: dict[str, float] = defaultdict(float)
        self.killer: str | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: (-worth(self.before, file := item.nodeid.split("::")[0]), file))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.split("::")[0]
        self.seconds[file] += report.duration
        if report.failed:
            self.killer = file

    def pytest_sessionfinish(self) -> None:
        kills = Counter(self.before["kills"]) + Counter([self.killer] if self.killer else [])
        # Of a run that ended at a failure, only the first one that looked at everything is worth keeping.
        seconds = self.before["seconds"] or (self.seconds if self.killer is None else {})
        self.path.write_text(json.dumps({"kills": kills, "seconds": seconds}))


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Examples follow from the test alone, so that a mutant's fate does not depend on those before it."""
    settings.register_profile(
        "mutants", settings.default, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
    )
    settings.load_profile("mutants")
    if RECORD in os.environ:
        config.pluginmanager.register(Quick(Path(os.environ[RECORD])))
