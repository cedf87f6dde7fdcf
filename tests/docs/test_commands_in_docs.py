"""What README and docs show is run, command by command and by section; their code and links do what they say."""

import importlib.util
import os
import re
import subprocess
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest

from benchmarks.rig.uverbs_rig import rig
from judging.run import Run
from running.directory import RunDirectory
from running.options import Choices
from running.runner import Runner
from running.spec import RunSpec
from running.transport_choice import TransportChoice, transport
from running.worlds.simulated import SimulatedWorld
from scenarios import library
from scenarios.scenario import Scenario
from tests.helpers.console_blocks import PAGES, ROOT, Block, blocks, missing, printed_by
from tests.helpers.pytorch.world import require_torch
from tests.libmrc.compiled import PERFTEST, REQUIREMENTS
from topo.emulation import state
from topo.planfile import load_plan

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


def code(page: str, holding: str) -> str:
    """The one Python block of a page that holds these words."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    (found,) = [block for block in blocks if holding in block]
    return str(found)


def simulate(scenario: Scenario, chosen: TransportChoice, plan: str, folder: Path) -> Run:
    choices = Choices(chosen, load_plan(plan), seed=1, world="simulated", time_factor=0.4)
    directory = RunDirectory.create(folder, scenario.name, 1)
    runner = Runner(RunSpec(scenario, choices), directory, tell=lambda event: None)
    runner.run(lambda: SimulatedWorld(choices.running_plan, chosen, 1, directory, runner.tell))
    return Run.open(directory.path)


def test_the_scenario_of_the_guide_runs(tmp_path: Path) -> None:
    file = tmp_path / "my_cut.py"
    file.write_text(code("docs/guide.md", "SCENARIO = Scenario("))
    run = simulate(library.find(str(file)), transport("mrc"), "tiny", tmp_path)
    assert [fault.target for fault in run.faults] == ["p0l0-p0s0"]
    assert run.kind("step")


def test_the_path_selection_of_the_guide_runs(tmp_path: Path) -> None:
    file = tmp_path / "my_file.py"
    file.write_text(code("docs/guide.md", "class RoundRobin(Selection)"))
    chosen = TransportChoice("mine", "", "mrc", {"selection": f"{file}:RoundRobin"})
    run = simulate(library.find("smoke"), chosen, "tiny", tmp_path)
    assert run.kind("step")
    assert all(line["verified"] for line in run.kind("step"))


@pytest.mark.parametrize("holding", ["MRC has no RNR", "solicited_only=True"])
def test_the_programs_of_the_page_on_uverbs_run(holding: str) -> None:
    with rig() as made:
        exec(code("docs/uverbs.md", holding), dict(zip(("one", "other"), made.names, strict=True)))


DOCS = Path(__file__).resolve().parents[2] / "docs"
_spec = importlib.util.spec_from_file_location("site_conf", DOCS / "conf.py")
assert _spec
assert _spec.loader
conf = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(conf)


def shown(name: str, text: str) -> str:
    source = [text]
    conf._read(None, name, source)
    return source[0]


def test_every_page_is_in_the_contents() -> None:
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")} - {"README"}
    contents = re.findall(r"^[\w/-]+$", conf._contents((DOCS / "README.md").read_text()), re.MULTILINE)
    assert sorted(contents) == sorted(pages)


def test_the_name_of_a_page_becomes_a_link_from_wherever_it_is() -> None:
    assert shown("guide", "see `docs/security.md`.") == "see [`docs/security.md`](/security.md).\n"
    assert shown("reference/fabric", "`topologies.md`") == "[`topologies.md`](/reference/topologies.md)\n"
    assert shown("guide", "`switch/native/README.md`, [`uverbs.md`](uverbs.md), `guide.md`") == (
        "`switch/native/README.md`, [`uverbs.md`](uverbs.md), `guide.md`\n"
    )
