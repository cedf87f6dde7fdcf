"""A plugin of pytest. With MRCLAB_FUZZ_S, tests of random input go on for so many seconds each, with new seeds.

A test of random input is one of Hypothesis, or one with an argument `seed`. Rounds count up from MRCLAB_FUZZ_SEED. The
seed of a round that fails is in its error: with that seed and 0 seconds the round is repeated alone.
"""

import itertools
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

SECONDS, SEED = "MRCLAB_FUZZ_S", "MRCLAB_FUZZ_SEED"
ROOT = Path(__file__).parents[2]
ROUNDS = pytest.StashKey[dict[str, int]]()


def first_seed() -> int:
    """As given; else from the commit, so that each commit tries other inputs; 1 without a clone."""
    if given := os.environ.get(SEED):
        return int(given)
    words = ["git", "rev-parse", "HEAD"]
    told = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return int(told[:8], 16) if told else 1


def seeds() -> Iterator[int]:
    """Seeds of the commit, at least three, until 40 s or those given are over: a test names the one that fails."""
    end_s = time.monotonic() + float(os.environ.get(SECONDS, "40"))
    for number, seed in enumerate(itertools.count(first_seed())):
        if number >= 3 and time.monotonic() >= end_s:
            return
        yield seed


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ROUNDS] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Carry a test out again and again; None leaves it to pytest."""
    function: Any = pyfuncitem.obj
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    of_hypothesis = hypothesis.is_hypothesis_test(function)
    if SECONDS not in os.environ or not (of_hypothesis or "seed" in given):
        return None
    rounds, end_s = pyfuncitem.config.stash[ROUNDS], time.monotonic() + float(os.environ[SECONDS])
    seed = int(os.environ.get(SEED, "0"))
    while not rounds.get(pyfuncitem.nodeid) or time.monotonic() < end_s:
        if of_hypothesis:
            hypothesis.seed(seed)(function)
        else:
            given["seed"] = seed
        try:
            function(**given)
        except BaseException as error:
            error.add_note(f"{SEED}={seed} {SECONDS}=0 repeats this round")
            raise
        rounds[pyfuncitem.nodeid] = rounds.get(pyfuncitem.nodeid, 0) + 1
        seed += 1
    return True


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for name, count in config.stash[ROUNDS].items():
        terminalreporter.write_line(f"fuzzed {count} rounds: {name}")
