"""Plugin of pytest for runs that only ask whether any test fails.

Hypothesis draws the same examples each time and shrinks none. Of the tests that are collected, those run that a file
names, in its order.
"""

import os
from pathlib import Path

import pytest
from hypothesis import Phase, settings

CHOSEN = "MRCLAB_MUTANTS_TESTS"  # names a file: one test per line, the first to run first


class Chosen:
    """Leaves out every test that the file does not name."""

    def __init__(self, path: Path) -> None:
        self.places = {name: place for place, name in enumerate(path.read_text().splitlines())}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in self.places])
        items[:] = sorted((one for one in items if one.nodeid in self.places), key=lambda one: self.places[one.nodeid])


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Examples follow from the test alone, so that a mutant's fate does not depend on those before it."""
    settings.register_profile(
        "mutants", settings.default, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
    )
    settings.load_profile("mutants")
    if CHOSEN in os.environ:
        config.pluginmanager.register(Chosen(Path(os.environ[CHOSEN])))
