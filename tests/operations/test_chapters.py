"""The guide's two chapters for operators, run as a reader types them."""

import pytest

from tests.helpers.console_blocks import ROOT, blocks, missing, printed_by

CHAPTERS = {
    place: [block for block in blocks() if block.place == place]
    for place in {block.place for block in blocks() if "lab incident" in str(block) or "lab rehearse" in str(block)}
    if place.startswith("docs/guide.md ")
}


def test_the_guide_has_a_chapter_on_each() -> None:
    assert len(CHAPTERS) == 2


@pytest.mark.slow
@pytest.mark.parametrize("place", sorted(CHAPTERS))
def test_a_chapter_prints_what_it_shows(place: str, tmp_path) -> None:
    lab = tmp_path / "lab"
    lab.write_text(f'#!/bin/sh\nexec "{ROOT}/lab" "$@"\n')
    lab.chmod(0o755)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    for block in CHAPTERS[place]:
        printed = printed_by(block, tmp_path, 600)
        assert missing(block.shown, printed) is None, f"{block.name}: not printed; the output is\n{printed}"
