"""A short recorded run in virtual time, a browser, and a view of something."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from page import export
from page.microscope import Microscope
from page.request_handler import RequestHandler
from page.view import View
from page.viewer import Viewer
from running.directory import find
from tests.helpers import browser as browsers
from tests.helpers.waiting import ran

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run: the smoke scenario with one more fault, broken off in the middle of it."""
    folder = tmp_path_factory.mktemp("runs")
    words = ["run", "smoke", "--world", "simulated", "--seed", "3", "--until", "6.5", "--plain", "--runs", str(folder)]
    done = ran([sys.executable, "-m", "cli", *words, "--fault", "loss p1l1-p1s0 20 @1 for 2"], timeout=300, cwd=ROOT)
    assert done.returncode == 3, done.stdout + done.stderr  # broken off: unknown
    return folder


@pytest.fixture
def run(runs: Path) -> Path:
    return find(runs, "latest")


@pytest.fixture(scope="module")
def pages() -> Iterator[Callable[[], browsers.Page]]:
    """Opens pages in one browser for all tests of a module: it takes longer to start than most of them.

    Skips where there is none.
    """
    if browsers.MISSING:
        pytest.skip(browsers.MISSING)
    with browsers.browser() as opened:
        yield opened


@pytest.fixture
def page(pages: Callable[[], browsers.Page]) -> Iterator[Callable[[], browsers.Page]]:
    """Opens pages, and closes them after the test."""
    with ExitStack() as closing:

        def opened() -> browsers.Page:
            page = pages()
            closing.callback(page.page.context.close)
            return page

        yield opened


def answering(view: View) -> RequestHandler:
    """What `./lab view` answers."""
    return RequestHandler(view.plans, Microscope(view.plans))


@pytest.fixture
def shown(page: Callable[[], browsers.Page], tmp_path: Path) -> Iterator[Callable[[View | list[Path]], browsers.Page]]:
    """Opens the page of a view, which is served until the test ends, or of runs in one exported file.

    Returns when the page has read everything. Nothing may be on its console when the test ends.
    """
    with ExitStack() as serving:
        pages = []

        def opened(what: View | list[Path]) -> browsers.Page:
            if isinstance(what, View):
                viewer = Viewer(what.document(), what.runs, answering(what), lambda said: None)
                address = serving.enter_context(viewer).address
            else:
                export.write(what, tmp_path / "r.html")
                address = (tmp_path / "r.html").as_uri()
            pages.append(page())
            pages[-1].open(address)
            pages[-1].until_read()
            return pages[-1]

        yield opened
        assert [word for one in pages for word in one.console] == []
