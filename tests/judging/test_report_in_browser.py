"""The report opened in a real browser: it renders, and the browser complains about nothing."""

from pathlib import Path

import pytest

from judging import checks
from judging.judge import verdict_of
from judging.reports import comparison, report
from judging.story import Story
from tests.helpers.browser import MISSING, browser

pytestmark = [pytest.mark.slow, pytest.mark.skipif(MISSING is not None, reason=str(MISSING))]


def opened(page: str, folder: Path) -> str:
    """The document as a browser has it that complains about nothing."""
    (folder / "page.html").write_text(page)
    with browser() as make:
        shown = make()
        shown.page.goto((folder / "page.html").as_uri())
        assert shown.console == []
        return str(shown.page.content())


def test_the_report_opens_without_errors(made_up, tmp_path: Path) -> None:
    run = made_up(dip=0.4)
    story = Story("A made-up run", "What was done.")
    document = opened(report.html(run, story, verdict_of(run, checks.always())), tmp_path)
    assert document.count("<svg") == 4
    assert "A made-up run" in document


def test_the_comparison_opens_without_errors(made_up, tmp_path: Path) -> None:
    document = opened(comparison.html([made_up(), made_up(dip=0.1)]), tmp_path)
    assert document.count("<svg") == 2
