"""Options that several commands have: each with its help and its rule in one place."""

import argparse
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from common.seeds import check_seed

SCENARIO_NAMES = "names from 'list', or paths of .py files of your own"


def add_runs(parser: argparse.ArgumentParser, kept: str = "runs are", default: Path | str | None = None) -> None:
    """`--runs`: the folder of runs; `kept` says what else is kept there."""
    from running.directory import RUNS  # late: commands without runs need none of what a folder of one holds

    parser.add_argument(
        "--runs",
        type=Path,
        default=RUNS if default is None else default,
        metavar="DIR",
        help=f"where {kept} kept (runs/)",
    )


def add_json(parser: argparse.ArgumentParser, default: object = False) -> None:
    """`--json`: one JSON document instead of text."""
    parser.add_argument("--json", action="store_true", default=default, help="the answer for programs")


def add_plain(parser: argparse.ArgumentParser, instead_of: str) -> None:
    """`--plain`: lines for logs and pipes."""
    parser.add_argument("--plain", action="store_true", help=f"print lines instead of the {instead_of}")


def check_workers(workers: int | None) -> None:
    """ValueError for a number of `--workers` that this machine must not start."""
    from running.workers import WORKERS_MAX  # late: it starts processes

    if workers is not None and not 1 <= workers <= WORKERS_MAX:
        raise ValueError(f"--workers must be between 1 and {WORKERS_MAX} (got {workers})")


def add_workers(parser: argparse.ArgumentParser) -> None:
    """`--workers`: how many processes make runs."""
    parser.add_argument("--workers", type=int, metavar="N", help="runs made at once (one per processor)")


def workers_for(asked: int | None, needed_bytes: int, tell: Callable[[str], None]) -> int:
    """So many runs at once: as asked, or one per processor, and no more than this machine's memory holds."""
    from running import estimate

    wanted, available = asked or len(os.sched_getaffinity(0)), estimate.available_memory()
    workers = min(wanted, estimate.runs_at_once(needed_bytes, available))
    if workers < wanted:
        tell(
            f"{workers} runs at once instead of {wanted}: each takes about {estimate.size(needed_bytes)} of memory, and"
            f" this machine has {estimate.size(available)} to spare"
        )
    return workers


def check_seconds(option: str, seconds: float | None, least: float | None = None) -> None:
    """ValueError for a time that no clock can wait for: `inf` and `nan` are floats, and argparse takes them."""
    if seconds is None:
        return
    from running import SECONDS_MAX  # late: its room describes whole runs

    rule = f"above 0 and at most {SECONDS_MAX} s" if least is None else f"between {least} and {SECONDS_MAX} s"
    if not (seconds > 0 and (least or 0) <= seconds <= SECONDS_MAX):
        raise ValueError(f"{option} must be {rule} (got {seconds:.15g})")


def seed_of(given: int | None) -> int:
    """The seed of `--seed`, or a new one. ValueError for one out of its range."""
    if given is None:
        return secrets.randbelow(1 << 31)
    check_seed(given)
    return given


def add_exercise(
    parser: argparse.ArgumentParser, check: Callable[[argparse.Namespace], None], *, named: bool = True
) -> None:
    """The lab of the course, where one is named, and the student's folder. `check` is `check_names`' (cli/names.py)."""
    parser.set_defaults(check=check)
    if named:
        parser.add_argument("lab", metavar="LAB", help="the lab's number or name")
    text = "the folder of work (mylab/)"
    parser.add_argument("--folder", type=Path, default=Path("mylab"), metavar="DIR", help=text)
