"""Every command that README and docs show is run, and the output that they show is what the command prints.

Words after `console` say what a block needs: `root` (namespaces), `slow` (too long for every run of the tests), `up` (a
lab that the block brings up itself, so that `down` follows), `verbs` and `perftest` (libibverbs-dev and perftest of
Debian), `nonzero` (it shows a failure and exits with 1), `exempt` (the page says why it cannot be run), `chapter` (the
page's blocks are one session, run in their order by a test of its own), `virtual` (runs in virtual time:
`test_sessions_in_docs.py`). A command that ends in `# exits with 1` does so.

Where real links and clocks are measured (`root`), figures differ from run to run and the lines are not compared.
"""

import os
import re
import subprocess
from collections import Counter

import pytest

from tests.helpers.console_blocks import PAGES, ROOT, blocks, missing, printed_by
from tests.helpers.pytorch.world import require_torch
from tests.libmrc.requirements import PERFTEST, REQUIREMENTS
from topo.emulation import state

ELSEWHERE = {
    "exempt": "exempt: the page says why it cannot be run here",
    "chapter": "part of a chapter, which is run from end to end",
}
MARKS = {"root": [pytest.mark.root], "slow": [pytest.mark.slow], "verbs": REQUIREMENTS, "perftest": [PERFTEST]}
WORDS = {"up", "nonzero", "virtual", "torch", *MARKS, *ELSEWHERE}


def parameters() -> list[object]:
    result: list[object] = []
    seen: Counter[str] = Counter()
    for block in blocks():
        seen[block.place] += 1
        if "virtual" not in block.words:
            marks = [mark for word, needed in MARKS.items() if word in block.words for mark in needed]
            result.append(pytest.param(block, id=f"{block.place} {seen[block.place]}", marks=marks))
    return result


def test_every_console_block_holds_commands_and_known_words() -> None:
    for block in blocks():
        assert block.commands, f"{block.name}: no line begins with '$ '"
        assert block.words <= WORDS, f"{block.name}: {sorted(block.words)}"


def test_what_runs_in_virtual_time_says_so() -> None:
    """So that the tests hold the pages to what the program prints."""
    for block in blocks():
        if block.words & {"exempt", "root"}:
            continue
        timeless = any(re.search(r"lab (run .*--world simulated|reproduce \S)", command) for command in block.commands)
        assert ("virtual" in block.words) >= timeless, f"{block.name}: the word 'virtual' is missing"
        assert ("slow" in block.words) <= ("virtual" in block.words), (
            f"{block.name}: a slow block is of real links or virtual time"
        )


def test_lines_that_are_shown_must_be_printed_in_order() -> None:
    printed = "a   1\nb 2\nc 3\n"
    assert missing(("a 1", "c 3"), printed) is None
    assert missing(("c 3", "a 1"), printed) == "a 1"
    assert missing(("a 2",), printed) == "a 2"


def test_no_page_has_a_place_left_to_fill_in() -> None:
    for page in PAGES:
        left = re.findall(r"^@[A-Z_]+@$", page.read_text(), re.MULTILINE)
        assert left == [], f"{page.relative_to(ROOT)}: {left}"


@pytest.mark.parametrize("block", parameters())
def test_commands_in_docs_run(block) -> None:
    for word, reason in ELSEWHERE.items():
        if word in block.words:
            pytest.skip(reason)
    if "root" in block.words and os.geteuid() != 0:
        pytest.skip("needs root: builds network namespaces")
    if "torch" in block.words:
        require_torch()
    if "up" in block.words and state.read_record(state.ROOT) is not None:
        pytest.skip("a lab is running on this machine")
    try:
        printed = printed_by(block, ROOT, 600)
        if "root" not in block.words:
            assert missing(block.shown, printed) is None, f"{block.name}: not printed; the output is\n{printed}"
    finally:
        if "up" in block.words:
            subprocess.run([str(ROOT / "lab"), "down"], cwd=ROOT, check=False, capture_output=True, timeout=120)


@pytest.mark.slow
@pytest.mark.root
def test_the_chapter_on_the_living_lab_runs_from_end_to_end() -> None:
    """In one lab, as root; what the page shows is printed, but for what clocks and real traffic decide."""
    if os.geteuid() != 0:
        pytest.skip("needs root: builds network namespaces")
    if state.read_record(state.ROOT) is not None:
        pytest.skip("a lab is running on this machine")
    chapter = [block for block in blocks() if "chapter" in block.words]
    assert chapter[0].commands[0] == "./lab up tiny"
    assert chapter[-1].commands[-1] == "./lab down"
    try:
        for block in chapter:
            printed = printed_by(block, ROOT, 120)
            timeless = tuple(line for line in block.shown if not re.search(r"\d ?(ms|s)$", line))
            assert missing(timeless, printed) is None, f"{block.name}: not printed; the output is\n{printed}"
    finally:
        for words in (["down"], ["down", "--name", "blue"]):
            subprocess.run([str(ROOT / "lab"), *words], cwd=ROOT, check=False, capture_output=True, timeout=120)
