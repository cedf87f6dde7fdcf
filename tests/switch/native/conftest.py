"""Programs for the native engine's tests, each compiled once a session."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from p4c.frontend import compile_program
from p4c.model import Program, load

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def compiled() -> Callable[[Path], Program]:
    return cache(lambda source: load(compile_program(source).json))


@pytest.fixture(scope="session")
def leaf(compiled: Callable[[Path], Program]) -> Program:
    return compiled(ROOT / "p4" / "leaf.p4")


@pytest.fixture(scope="session")
def spine(compiled: Callable[[Path], Program]) -> Program:
    return compiled(ROOT / "p4" / "spine.p4")
