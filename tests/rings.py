"""The rings of the tests: python -m tests.rings [--quick | --due [--minutes N] | --all [--minutes N]] [WORD...]

`./lab test` runs them all. `.ci/run` runs --due, the slow tests whose turn it is, in the time that it has left.
Further words go to pytest. docs/testing.md says what each ring is for.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

BESIDE = ("-n", "auto", "--dist", "worksteal")
IN_ORDER = ("-n", "auto", "--dist", "load", "--maxschedchunk", "1")
ROOT_SHARE = 0.4  # of the time for slow tests: those with root run one at a time
QUICK_TESTS = 4000


def pytest(*words: str, form: str | None = None) -> int:
    """The exit status of pytest, with the endpoint compiled ("on"), interpreted ("off") or as it is built."""
    environment = {**os.environ, **({"MRCLAB_COMPILED": form} if form else {})}
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *words], env=environment, check=False).returncode


def quick(words: list[str]) -> int:
    """Ring 0: no process, compiler, network or browser; the endpoint is interpreted, as an edit leaves it."""
    at_least = () if words else ("--at-least", str(QUICK_TESTS))
    return pytest("--ring", "0", "-rfE", *BESIDE, *at_least, *words, form="off")


def default(words: list[str]) -> int:
    """Ring 1: all but the slow tests. Those that bring up labs come last: they measure real time.

    Each worker of pytest has links and a /run to itself (tests/conftest.py); where the kernel allows no such thing,
    tests of labs run one after the other.
    """
    private = subprocess.run(["unshare", "--mount", "--net", "true"], capture_output=True, check=False).returncode == 0
    with_root = ("-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder") if private else ()
    return worst(
        lambda: pytest(*BESIDE, "-m", "not root and not slow", *words, form="on"),
        lambda: pytest(*with_root, "-m", "root and not slow", *words),
    )


def slow(ring: str, until: float | None, words: list[str]) -> int:
    """Ring 2: slow tests, up to a time. Those with root run one at a time, since they measure real time."""

    def part(marks: str, how: tuple[str, ...], share: float) -> int:
        end = () if until is None else ("--until", str(time.monotonic() + share * (until - time.monotonic())))
        return pytest("--ring", ring, "-m", marks, *how, *end, *words)

    return worst(
        lambda: part("slow and not root", IN_ORDER, 1 - ROOT_SHARE), lambda: part("slow and root", ("-n", "1"), 1.0)
    )


def worst(*parts: Callable[[], int]) -> int:
    """Carry out all parts; the status of the first that failed, or 0."""
    return next(filter(None, [part() for part in parts]), 0)


def uptime_s() -> float:
    """Seconds since the machine's start, which a shell can read as well."""
    return float(Path("/proc/uptime").read_text().split()[0])


def minutes(text: str) -> float:
    with suppress(ValueError):
        if 0 <= float(text) < float("inf"):
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a number of minutes, 0 or more (got {text!r})")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./lab test", allow_abbrev=False)
    ring = parser.add_mutually_exclusive_group()
    ring.add_argument("--quick", action="store_true", help="ring 0: tests that start no process, in 90 seconds")
    ring.add_argument("--due", action="store_true", help="of ring 2, the slow tests whose turn it is")
    ring.add_argument("--all", action="store_true", help="rings 1 and 2: the slow tests too, longest not run first")
    parser.add_argument(
        "--minutes", type=minutes, help="with --all or --due: begin no slow test that would end after so long"
    )
    parser.add_argument("--began", type=float, default=uptime_s(), help=argparse.SUPPRESS)  # what ran before counts
    asked, rest = parser.parse_known_args(words)
    if asked.minutes is not None and not (asked.all or asked.due):
        parser.error("--minutes needs --all or --due")
    if asked.quick:
        return quick(rest)
    until = None if asked.minutes is None else time.monotonic() + 60 * asked.minutes - (uptime_s() - asked.began)
    due, others = (lambda: slow("due", until, rest)), (lambda: slow("others", until, rest))
    return due() if asked.due else worst(lambda: default(rest), *((due, others) if asked.all else ()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
