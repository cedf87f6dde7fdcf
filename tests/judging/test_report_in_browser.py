"""The report opened in a real browser: it renders, and the browser complains about nothing."""

import shutil
import subprocess
from pathlib import Path

import pytest

from judging import checks
from judging.judge import verdict_of
from judging.reports import comparison, report
from judging.story import Story

CHROMIUM = shutil.which("chromium")
QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr",
]  # fmt: skip

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")]


def opened(page: str, folder: Path) -> tuple[str, str]:
    """The document as the browser has it, and what it said on its console."""
    file = folder / "page.html"
    file.write_text(page)
    words = [str(CHROMIUM), *QUIET, f"--user-data-dir={folder / 'profile'}", "--dump-dom", file.as_uri()]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


def test_the_report_opens_without_errors(made_up, tmp_path: Path) -> None:
    run = made_up(dip=0.4)
    story = Story("A made-up run", "What was done.")
    document, console = opened(report.html(run, story, verdict_of(run, checks.always())), tmp_path)
    assert console == ""
    assert document.count("<svg") == 4
    assert "A made-up run" in document


def test_the_comparison_opens_without_errors(made_up, tmp_path: Path) -> None:
    document, console = opened(comparison.html([made_up(), made_up(dip=0.1)]), tmp_path)
    assert console == ""
    assert document.count("<svg") == 2
