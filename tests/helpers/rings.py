"""A plugin of pytest: the rings of the tests (docs/testing.md), and what each test costs.

python -m pytest --ring 0                       # what needs no process, compiler, network or browser, and is quick
python -m pytest -m slow --ring due             # slow tests whose turn it is in this run of CI; --ring others: the rest
python -m pytest -m slow --renew-costs          # write what the tests took to tests/costs.json

In ring 0 the call that would start a process is refused, and the test is skipped: so the ring follows from what tests
do, and no list of its tests can be wrong.
"""

import _posixsubprocess
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import costs
from tests.helpers.costs import Costs

REFUSED = {
    "subprocess.Popen": "a process", "os.fork": "a process", "os.forkpty": "a process", "os.posix_spawn": "a process",
    "os.system": "a process", "socket.bind": "a socket", "socket.connect": "a socket",
}  # fmt: skip
"""Events of `sys.audit`, and what they begin."""
NAMESPACES = {"unshare", "setns", "mount"}
OTHER_MARKS = ("slow", "root", "bmv2", "p4c", "vm")
COSTS = pytest.StashKey[Costs]()
DEAR = pytest.StashKey[set[str]]()
LEFT = pytest.StashKey[list[str]]()
TOOK = pytest.StashKey[dict[str, float]]()


def passed(config: pytest.Config) -> int:
    """How many tests have passed so far."""
    printing: Any = config.pluginmanager.get_plugin("terminalreporter")
    return len(printing.stats.get("passed", ()))


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mrclab")
    group.addoption("--ring", choices=["0", "due", "others"], help="of the tests, run those of this ring")
    group.addoption("--until", type=float, help="begin no slow test that would end after this time (time.monotonic())")
    group.addoption("--at-least", type=int, default=0, help="fail when fewer tests than this pass")
    group.addoption("--renew-costs", action="store_true", help=f"write what tests took to {costs.FILE}")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT], config.stash[COSTS] = [], Costs.read(config.rootpath)
    if config.getoption("--ring") == "0":
        config.pluginmanager.register(Refusals(config))
    if config.getoption("--ring") in ("due", "others") or config.getoption("--until"):
        config.pluginmanager.register(Turns(config))
    if config.getoption("--renew-costs"):
        config.pluginmanager.register(Clock(config))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files without a mark that all wanted tests have: reading one takes less time than importing it."""
    wanted = {word for word in wanted_words(config) if word in OTHER_MARKS}
    if not wanted or collection_path.suffix != ".py":
        return None
    if any(name.partition("::")[0] == collection_path.relative_to(config.rootpath).as_posix() for name in dear(config)):
        wanted.discard("slow")
    text = collection_path.read_text(encoding="utf-8")
    return any(f"mark.{word}" not in text for word in wanted) or None


def wanted_words(config: pytest.Config) -> list[str]:
    """The parts of `-m`, such as `root` and `not slow`."""
    return str(config.getoption("-m")).split(" and ")


def dear(config: pytest.Config) -> set[str]:
    """The tests that are slow by what they take, with root or without."""
    if DEAR not in config.stash:
        known = config.stash[COSTS]
        config.stash[DEAR] = {name for name in known.seconds if known.slow(name, root=False)}
    return config.stash[DEAR]


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests as slow by their records, and skip those marked `root` where another user runs them."""
    known = config.stash[COSTS]
    for item in items:
        if os.geteuid() != 0 and item.get_closest_marker("root"):
            item.add_marker(pytest.mark.skip(reason="needs root"))
        if known.slow(item.nodeid, item.get_closest_marker("root") is not None) and not item.get_closest_marker(
            "smoke"
        ):
            item.add_marker("slow")
    if "root" in wanted_words(config):  # dealt by file: the longest first, so that workers end together
        took: dict[Path, float] = defaultdict(float)
        for item in items:
            took[item.path] += known.seconds.get(item.nodeid, 0.0)
        items.sort(key=lambda item: -took[item.path])


class Refusals:
    """Ring 0: tests that are quick, and what they may not do."""

    def __init__(self, config: pytest.Config) -> None:
        self._guarding, self._refused = False, ""
        config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnhandledThreadExceptionWarning")  # of refusals
        sys.addaudithook(self._hear)
        fork_exec = _posixsubprocess.fork_exec

        def refuse(*arguments: Any) -> int:
            self._hear("os.fork", ())  # multiprocessing starts processes without an event
            return fork_exec(*arguments)

        _posixsubprocess.fork_exec = refuse

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._guarding:
            return
        begins = REFUSED.get(event)
        if event == "ctypes.dlsym" and arguments[1] in NAMESPACES:
            begins = "a namespace"
        if event == "import" and arguments[0].split(".")[0] == "playwright":  # later, a loop is left
            begins = "a browser"
        if begins:
            self._refused = f"begins {begins}: a test of ring 1"
            raise pytest.skip.Exception(self._refused)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        recorded = config.stash[COSTS].seconds
        left = [i for i in items if i.nodeid in recorded or any(map(i.get_closest_marker, OTHER_MARKS))]
        config.hook.pytest_deselected(items=left)
        left_names = {item.nodeid for item in left}
        items[:] = [item for item in items if item.nodeid not in left_names]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        self._guarding, self._refused = True, ""
        try:
            return (yield)
        finally:
            self._guarding = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Any:
        """A refusal may end in another error, or in an error of a thread: the test is skipped all the same."""
        report = yield
        if self._refused and (report.failed or report.when != "teardown"):
            report.outcome, report.longrepr = "skipped", (__file__, 0, self._refused)
        return report


class Turns:
    """Ring 2: the slow tests in the order in which they run, and those that a budget leaves out."""

    def __init__(self, config: pytest.Config) -> None:
        self._until, self._costs = config.getoption("--until"), config.stash[COSTS]
        try:
            self._run, self.origin = costs.run_number(config.rootpath)
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error
        self._left = config.stash[LEFT]
        self._may_overrun = config.getoption("--ring") == "due"
        """The first test of each worker: else no budget would ever reach one that takes longer."""

    @pytest.hookimpl(trylast=True)  # when -m and -k have chosen
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        slow = {i.nodeid: i for i in items if i.get_closest_marker("slow") and not i.get_closest_marker("by_hand")}
        due, others = costs.ordered(slow, self._costs, self._run, costs.changes(config.rootpath))
        wanted = {"due": due, "others": others}.get(config.getoption("--ring"), [*due, *others])
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in set(wanted)])
        items[:] = [slow[name] for name in wanted]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        first, self._may_overrun = self._may_overrun, False
        if first or self._until is None or time.monotonic() + self._costs.of_slow(item.nodeid) <= self._until:
            return None
        self._left.append(item.nodeid)
        item.session._setupstate.teardown_exact(nextitem)  # the test before kept what this one would have used
        return True


class Clock:
    """Measures tests in the process that runs them, and adds up what is reported.

    Fixtures that several tests share count for none of them.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._began, self._shared, self._took = (0.0, 0.0), [0.0, 0.0], config.stash.setdefault(TOOK, {})

    @staticmethod
    def _now() -> tuple[float, float]:
        took = os.times()
        return took.elapsed, took.user + took.system + took.children_user + took.children_system

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self._began, self._shared = self._now(), [0.0, 0.0]

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Any:
        before, shared = self._now(), list(self._shared)
        if fixturedef.scope == "function":
            return (yield)
        ends: list[tuple[float, float]] = []
        fixturedef.addfinalizer(lambda: self._share(self._shared, ends.pop()))  # the last one first: this one last
        try:
            return (yield)
        finally:
            self._share(shared, before)  # those that it asks for are within
            fixturedef.addfinalizer(lambda: ends.append(self._now()))

    def _share(self, already: list[float], began: tuple[float, float]) -> None:
        """Count the time since `began` for no test."""
        self._shared = [s + now - since for s, now, since in zip(already, self._now(), began, strict=True)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Any:
        report = yield
        elapsed, processor = (
            now - began - shared for now, began, shared in zip(self._now(), self._began, self._shared, strict=True)
        )
        report.cost = elapsed if item.get_closest_marker("root") else processor
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "teardown":
            self._took[report.nodeid] = report.cost


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if hasattr(config, "workeroutput"):  # a worker of pytest-xdist tells the process that prints
        config.workeroutput["left"] = config.stash[LEFT]
        return
    if config.getoption("--ring") and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK  # there may be none whose turn it is
    if session.exitstatus == pytest.ExitCode.OK and passed(config) < config.getoption("--at-least"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    took: dict[str, float] = config.stash.get(TOOK, {})
    if took:
        config.stash[COSTS].renewed(took, config.rootpath)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker of pytest-xdist has ended."""
    node.config.stash[LEFT] += getattr(node, "workeroutput", {}).get("left", [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left, wanted = config.stash[LEFT], config.getoption("--at-least")
    if (passed := len(terminalreporter.stats.get("passed", ()))) < wanted:
        terminalreporter.write_line(
            f"at least {wanted} tests must pass (got {passed}): others now do what ring 1 is for"
        )
    if left:
        terminalreporter.section("left out by the budget")
        terminalreporter.write_line(
            f"{len(left)} slow tests, in the order of this run; a group's next turn takes them first:"
        )
        for line in costs.grouped(left):
            terminalreporter.write_line(line)
