"""A wall clock that a test may set for the processes that it starts: Debian's libfaketime, and no other clock."""

from __future__ import annotations

from pathlib import Path

import pytest

LIBRARY = next(iter(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
needs_faketime = pytest.mark.skipif(LIBRARY is None, reason="needs libfaketimeMT.so.1: apt-get install faketime")


class SetClock:
    """The clock of all processes that have `environment`."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self.step(0)

    @property
    def environment(self) -> dict[str, str]:
        settings = {"FAKETIME_TIMESTAMP_FILE": self._file, "FAKETIME_NO_CACHE": 1, "FAKETIME_DONT_FAKE_MONOTONIC": 1}
        return {"LD_PRELOAD": str(LIBRARY), **{name: str(value) for name, value in settings.items()}}

    def step(self, seconds: int) -> None:
        """From now on the clock is so far ahead of the true time; below zero, behind it."""
        new = self._file.with_name("new")
        new.write_text(f"{seconds:+d}\n")
        new.replace(self._file)
