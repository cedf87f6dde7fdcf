"""A plugin of pytest: `--slice` runs a slice of the slow tests and prints what it leaves out.

python -m pytest -m slow --slice 2/5           # the second of five slices, each about as long
python -m pytest -m slow --slice auto          # the slice that follows from the commit, as in CI
python -m pytest -m slow --renew-durations     # write what the tests took to tests/slow-durations.json
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.helpers import slices
from tests.helpers.slices import Durations, Slice

SLICE = pytest.StashKey[Slice]()
LEFT_OUT = pytest.StashKey[dict[str, Any]]()
TOOK = pytest.StashKey[dict[tuple[str, str], float]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mrclab")
    group.addoption("--slice", metavar="K/N|auto", help="of the slow tests, run slice K of N; auto: by the commit")
    group.addoption("--renew-durations", action="store_true", help=f"write what slow tests took to {slices.FILE}")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--renew-durations"):
        config.stash[TOOK] = {}
    asked = config.getoption("--slice")
    if asked:
        try:
            config.stash[SLICE] = slices.chosen(asked, os.environ, config.rootpath)
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(trylast=True)  # when -m and -k have chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.stash.get(SLICE, None)
    if wanted is None:
        return
    durations = Durations.read(config.rootpath / slices.FILE)
    slow = {item.nodeid: item for item in items if item.get_closest_marker("slow")}
    by_hand = {name: marker.args[0] for name, item in slow.items() if (marker := item.get_closest_marker("by_hand"))}
    of_slice = slices.members([name for name in slow if name not in by_hand], durations, wanted.of)
    mine = sorted(
        (name for name, number in of_slice.items() if number == wanted.number),
        key=durations.seconds, reverse=True,  # so that no long one is the last, which the other workers wait for
    )  # fmt: skip
    others = [name for name in of_slice if name not in mine]
    config.stash[LEFT_OUT] = {
        "ran": len(mine), "seconds": sum(map(durations.seconds, mine)), "others": others, "by_hand": by_hand,
    }  # fmt: skip
    config.hook.pytest_deselected(items=[slow[name] for name in [*others, *by_hand]])
    items[:] = [slow[name] for name in mine] + [item for item in items if item.nodeid not in slow]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if hasattr(config, "workeroutput"):  # a worker of pytest-xdist tells the process that prints
        config.workeroutput["left_out"] = config.stash.get(LEFT_OUT, None)
        return
    if SLICE in config.stash and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK  # all tests that match -m may be in other slices
    took = config.stash.get(TOOK, {})
    if took:
        durations = Durations.read(config.rootpath / slices.FILE)
        for (name, kind), seconds in took.items():
            durations.measured(name, kind, seconds)
        durations.write(config.rootpath / slices.FILE)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker of pytest-xdist has ended; all of them collected the same tests."""
    left_out = getattr(node, "workeroutput", {}).get("left_out")
    if left_out:
        node.config.stash[LEFT_OUT] = left_out


class Recorder:
    """Adds up what each slow test took, its fixtures included."""

    def __init__(self, took: dict[tuple[str, str], float]) -> None:
        self._took = took

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if "slow" in report.keywords and "by_hand" not in report.keywords and not report.skipped:
            kind = slices.ALONE if "root" in report.keywords else slices.TOGETHER
            self._took[report.nodeid, kind] = self._took.get((report.nodeid, kind), 0.0) + report.duration


def pytest_sessionstart(session: pytest.Session) -> None:
    took = session.config.stash.get(TOOK, None)
    if took is not None and not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(Recorder(took))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left_out = config.stash.get(LEFT_OUT, None)
    if left_out is None:
        return
    write, wanted = terminalreporter.write_line, config.stash[SLICE]
    others, by_hand = left_out["others"], left_out["by_hand"]
    terminalreporter.section(f"slice {wanted.number} of {wanted.of}, {wanted.origin}")
    write(f"{left_out['ran']} slow tests, about {left_out['seconds'] / 60:.1f} minutes of one processor")
    write(f"left out: {len(others)} in other slices")
    for line in slices.grouped(others):
        write(line)
    write(f"left out: {len(by_hand)} that are in no slice and run by hand")
    for reason in dict.fromkeys(by_hand.values()):
        write(f" {reason}:")
        for line in slices.grouped(name for name, given in by_hand.items() if given == reason):
            write(line)
