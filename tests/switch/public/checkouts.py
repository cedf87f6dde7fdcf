"""Where other people's repositories are: nothing of them is part of this one."""

import os
from pathlib import Path

import pytest

VARIABLE = "MRCLAB_P4_CHECKOUTS"
"""A folder that holds checkouts by the names of their repositories: tutorials, sonic-pins, p4c and so on."""


def found(name: str) -> Path | None:
    """The checkout of a repository, if it is there."""
    folder = os.environ.get(VARIABLE)
    place = Path(folder, name) if folder else None
    return place if place is not None and place.is_dir() else None


def checkout(name: str) -> Path:
    """The checkout of a repository; the test is skipped without."""
    place = found(name)
    if place is None:
        pytest.skip(f"needs a checkout of {name}, in the folder that {VARIABLE} names")
    return place
