"""The endpoint's quick tests once more, with its interpreted form: `./lab test` runs them with the compiled one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
PLACES = {
    "transport": [HERE / "mrc"],
    "roce": [HERE / "roce"],
    "uverbs": [HERE / "uverbs"],
    "agent": [path for path in HERE.glob("test_*.py") if path != Path(__file__)],
    "whole runs": [ROOT / "tests" / "running" / "worlds" / "test_simulated_exact.py"],
}


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_the_interpreted_form_passes_the_tests_of_the_compiled_one(place: str) -> None:
    words = ["-q", "-m", "not root and not slow", "-p", "no:cacheprovider", *map(str, sorted(PLACES[place]))]
    environment = {**os.environ, "MRCLAB_COMPILED": "off"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]


def test_every_folder_of_the_endpoints_tests_has_a_place() -> None:
    covered = [path for paths in PLACES.values() for path in paths]
    assert [path for path in HERE.rglob("test_*.py") if not any(path.is_relative_to(one) for one in covered)] == [
        Path(__file__)
    ]
