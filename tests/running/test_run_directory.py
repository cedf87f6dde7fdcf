"""Run directories: each run has one of its own, whoever makes others at the same moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from running.directory import RunDirectory

MAKERS = 16


def test_runs_of_one_scenario_and_seed_that_begin_together_do_not_meet(tmp_path: Path) -> None:
    together = Barrier(MAKERS)

    def make(_: int) -> Path:
        together.wait()
        return RunDirectory.create(tmp_path, "smoke", 7).path

    for _ in range(8):
        with ThreadPoolExecutor(MAKERS) as makers:
            made = list(makers.map(make, range(MAKERS)))
        assert len(set(made)) == MAKERS
        assert all((path / "journal").is_dir() for path in made)
        assert (tmp_path / "latest").resolve() in made
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
