"""The endpoint's quick tests once more, with its interpreted form: `./lab test` runs them with the compiled one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NO_TESTS = 5  # pytest's exit status where all tests of a file are slow or need root
WHOLE_RUNS = ROOT / "tests" / "running" / "worlds" / "test_simulated_exact.py"
FILES = [path for path in Path(__file__).parent.rglob("test_*.py") if path != Path(__file__)]


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(str(path.relative_to(ROOT)) for path in [*FILES, WHOLE_RUNS]))
def test_the_interpreted_form_passes_the_tests_of_the_compiled_one(file: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not root and not slow", "-p", "no:cacheprovider", file]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"MRCLAB_COMPILED": "off"}, capture_output=True, text=True
    )
    assert done.returncode in (0, NO_TESTS), done.stdout + done.stderr
