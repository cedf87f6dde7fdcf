from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.rig.uverbs_rig import rig
from tests.helpers.joined_ends import joined

Pair = Iterator[tuple[Any, ...]]


def running(transport: str) -> Pair:
    """Two NICs in memory, and a program on each."""
    with rig(transport) as made:
        ends = joined(made)
        yield made, *ends
        for end in ends:
            end.context.close()


@pytest.fixture(params=["mrc", "roce"])
def pair(request: pytest.FixtureRequest) -> Pair:
    yield from running(request.param)


@pytest.fixture
def mrc() -> Pair:
    yield from running("mrc")
