"""What README and docs show in virtual time is run, section by section, and its output is what is printed.

The `console virtual` blocks of a section are one session: its commands run in their order, as a reader would type
them, in a folder with `./lab` and the folders of the tree that pages name. So sessions can run at once, and
`./lab compare` finds the session's runs and no others.
"""

import os
from itertools import groupby
from pathlib import Path

import pytest

from tests.helpers.console_blocks import ROOT, Block, blocks, missing, printed_by
from tests.helpers.pytorch.world import require_torch

FOLDERS = ("docs", "schedules")
"""Folders of the tree that commands on pages read."""
SESSIONS = {
    place: list(found)
    for place, found in groupby((block for block in blocks() if "virtual" in block.words), lambda block: block.place)
}
PARAMETERS = [
    pytest.param(session, id=place, marks=[pytest.mark.slow] if any("slow" in block.words for block in session) else [])
    for place, session in SESSIONS.items()
]


@pytest.mark.skipif(
    os.environ.get("MRCLAB_COMPILED") == "off",
    reason="takes three times as long interpreted; ./lab test runs it compiled",
)
@pytest.mark.parametrize("session", PARAMETERS)
def test_a_session_in_virtual_time_prints_what_the_page_shows(session: list[Block], tmp_path: Path) -> None:
    if any("torch" in block.words for block in session):
        require_torch()
    lab = tmp_path / "lab"
    lab.write_text(f'#!/bin/sh\nexec "{ROOT}/lab" "$@"\n')
    lab.chmod(0o755)
    for name in FOLDERS:
        (tmp_path / name).symlink_to(ROOT / name)
    differs = []
    for block in session:
        printed = printed_by(block, tmp_path, 600)
        line = missing(block.shown, printed)
        if line is not None:
            differs.append(f"{block.name}: not printed: {line}\nThe output is\n{printed}")
    assert not differs, "\n\n".join(differs)
