"""Every command that README and docs show is run, and what they show of its output is what it prints.

A fenced block whose info string begins with `console` holds commands behind `$ `; the rest is output. Words after
`console` say what a command needs: `root` (namespaces), `slow` (minutes), `up` (a lab that the block brings up itself,
so that `down` follows), `nonzero` (it shows a failure and exits with 1), `exempt` (the page says why it cannot be run),
`chapter` (the page's blocks are one session, run in their order by a test of its own).
A command that ends in `# exits with 1` does so.

A `text` block right behind holds lines of the output, in order, others left out; where real links and clocks are
measured (`root`), figures differ from run to run and the lines are not compared.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

from topo.emulation import state

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *(page for depth in ("docs/*.md", "*/README.md", "*/*/README.md") for page in sorted(ROOT.glob(depth))),
]
FENCE = re.compile(r"^```(\w*)(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    words: frozenset[str]
    commands: tuple[str, ...]
    shown: tuple[str, ...]  # lines of the output that the page shows

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks() -> Iterator[Block]:
    for page in PAGES:
        text = page.read_text()
        fences = list(FENCE.finditer(text))
        for found, following in zip_longest(fences, fences[1:]):
            if found[1] != "console":
                continue
            commands = tuple(line[2:] for line in found[3].splitlines() if line.startswith("$ "))
            shown: tuple[str, ...] = ()
            if following and following[1] == "text" and not text[found.end() : following.start()].strip():
                shown = tuple(line for line in map(squeezed, following[3].splitlines()) if line not in ("", "…"))
            line = text.count("\n", 0, found.start()) + 1
            yield Block(page, line, frozenset(found[2].split()), commands, shown)


def squeezed(line: str) -> str:
    """Without the spaces that set columns: a table is as wide as its widest line, which a page may leave out."""
    return " ".join(line.split())


def missing(shown: tuple[str, ...], printed: str) -> str | None:
    """The first line that is shown and not printed behind those before it."""
    lines = iter([squeezed(line) for line in printed.splitlines()])
    return next((wanted for wanted in shown if not any(line == wanted for line in lines)), None)


def parameters() -> list[object]:
    result: list[object] = []
    for block in blocks():
        marks = [getattr(pytest.mark, word) for word in ("root", "slow") if word in block.words]
        result.append(pytest.param(block, id=block.name, marks=marks))
    return result


def test_every_console_block_holds_commands_and_known_words() -> None:
    for block in blocks():
        assert block.commands, f"{block.name}: no line begins with '$ '"
        assert block.words <= {"root", "slow", "up", "exempt", "nonzero", "chapter"}, (
            f"{block.name}: {sorted(block.words)}"
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
def test_commands_in_docs_run(block: Block) -> None:
    if "exempt" in block.words:
        pytest.skip("exempt: the page says why it cannot be run here")
    if "chapter" in block.words:
        pytest.skip("part of a chapter, which is run from end to end")
    if "root" in block.words and os.geteuid() != 0:
        pytest.skip("needs root: builds network namespaces")
    if "up" in block.words and state.read_record(state.ROOT) is not None:
        pytest.skip("a lab is running on this machine")
    shell = shutil.which("bash") or "/bin/sh"
    printed = ""
    try:
        for command in block.commands:
            done = subprocess.run(
                [shell, "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=600,
                stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
            wanted = int("nonzero" in block.words or command.endswith("# exits with 1"))
            assert done.returncode == wanted, f"{block.name}: {command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
            printed += done.stdout
        if "root" not in block.words:
            assert missing(block.shown, printed) is None, f"{block.name}: not printed; the output is\n{printed}"
    finally:
        if "up" in block.words:
            subprocess.run([str(ROOT / "lab"), "down"], cwd=ROOT, check=False, capture_output=True, timeout=120)


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
            printed = ""
            for command in block.commands:
                done = subprocess.run(
                    ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=120,
                    stdin=subprocess.DEVNULL, check=False,
                )  # fmt: skip
                wanted = int(command.endswith("# exits with 1"))
                said = f"{block.name}: {command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
                assert done.returncode == wanted, said
                printed += done.stdout
            timeless = tuple(line for line in block.shown if not re.search(r"\d ?(ms|s)$", line))
            assert missing(timeless, printed) is None, f"{block.name}: not printed; the output is\n{printed}"
    finally:
        for words in (["down"], ["down", "--name", "blue"]):
            subprocess.run([str(ROOT / "lab"), *words], cwd=ROOT, check=False, capture_output=True, timeout=120)
