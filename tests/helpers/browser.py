"""A real browser for tests of pages: the system's Chromium, driven by Playwright; every word on the console is kept."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Literal

CHROMIUM = shutil.which("chromium")
MISSING = next(
    (
        why
        for there, why in (
            (CHROMIUM, "chromium is not installed (apt-get install chromium)"),
            (find_spec("playwright"), "playwright is not installed (pip install --editable '.[browser]')"),
            (find_spec("uvicorn"), "the page's server is not installed (pip install --editable '.[view]')"),
        )
        if not there
    ),
    None,
)
"""Why there is no browser here; None where there is one."""
WORDS = ["--no-sandbox", "--disable-quic", "--disable-background-networking", "--disable-component-update"]
WAIT_S = 60.0


class Page:
    """One page with its console. Expressions are evaluated by the debugger, which no content policy binds."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.console: list[str] = []
        page.on("console", lambda message: self.console.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.console.append(f"error: {error}"))

    def value(self, expression: str) -> Any:
        """The present value of an expression."""
        return self.page.evaluate(f"() => ({expression})")

    def until(self, expression: str, wait_s: float = WAIT_S) -> Any:
        """The expression's value as soon as it is true; an AssertionError that names it when it stays false."""
        end_s = time.monotonic() + wait_s
        while not (value := self.value(expression)):
            assert time.monotonic() < end_s, f"never true: {expression}; the console says {self.console}"
            self.page.wait_for_timeout(30)
        return value

    def open(self, address: str) -> None:
        """Go there; returns when the page has drawn."""
        self.page.goto(address)
        self.until("globalThis.lab?.frames > 1")

    def until_read(self) -> None:
        """Returns when every run on the page has been read to its end."""
        self.until("lab.lanes.every((lane) => lane.record.over)")


@contextmanager
def browser(
    width: int = 1280, height: int = 720, scheme: Literal["light", "dark"] = "light"
) -> Iterator[Callable[[], Page]]:
    """Opens pages of this size, each in a separate browser profile; ends the browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=WORDS)
        try:
            yield lambda: Page(
                chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme).new_page()
            )
        finally:
            chromium.close()
