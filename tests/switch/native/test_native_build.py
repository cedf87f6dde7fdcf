"""The C compiler, as the native engine runs it."""

import os
from pathlib import Path

import pytest

from switch.native import build
from tests.helpers.waiting import eventually

COMPILER = """#!/bin/sh
cd "$(dirname "$0")"
(exec 3>held; read line <never) &
wait
"""


def test_a_compiler_that_does_not_end_is_stopped_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command of a compiler runs the compiler proper as its child, which keeps the pipes open."""
    script = tmp_path / "cc"
    script.write_text(COMPILER)
    script.chmod(0o755)
    for name in ("held", "never"):
        os.mkfifo(tmp_path / name)
    held = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    monkeypatch.setattr(build, "COMPILER_S_MAX", 0.3)
    with pytest.raises(build.EngineBuildError, match=r"C compiler must end within 0\.3 s: .*cc program\.c was stopped"):
        build._run((str(script), "program.c"))

    def released() -> bool:
        try:
            return os.read(held, 1) == b""
        except BlockingIOError:  # a process has the other end
            return False

    eventually(released, "the compiler's child has ended")
    os.close(held)
