"""A journal that stays on disk reads as one in memory does, and is judged the same."""

import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.journal import Line
from judging import run as runs
from judging.journal import merge
from judging.judge import judge
from judging.run import Run, StoredJournal, grouped
from running.assessment import setting_of
from scenarios import library
from topo.plan import Plan
from topo.planfile import load_plan

JOURNAL = Path(__file__).parent / "journals" / "link-flap-freeze.jsonl.xz"

lines = st.fixed_dictionaries(
    {"t_ns": st.integers(0, 5), "node": st.sampled_from("ab"), "kind": st.sampled_from("xy"), "n": st.integers()}
)
texts = st.lists(
    st.one_of(lines.map(lambda line: json.dumps(line).encode()), st.binary(max_size=6), st.just(b"[]")), max_size=12
).map(b"\n".join)


@given(files=st.lists(texts, max_size=3), torn=st.booleans())
def test_a_stored_journal_holds_what_a_merged_journal_holds(
    files: list[bytes], torn: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    paths = [folder / f"{number}.jsonl" for number in range(len(files))]
    for path, text in zip(paths, files, strict=True):
        path.write_bytes(text if torn else text + b"\n")
    stored, merged = StoredJournal.of(paths), merge(paths)
    assert list(stored) == merged
    assert list(stored[1:3]) == merged[1:3]
    assert not merged or stored[-1] == merged[-1]
    with pytest.raises(IndexError):
        stored[len(merged)]

    def name(line: Line) -> str | None:
        return None if line["kind"] == "y" else str(line["node"])

    assert {node: list(found) for node, found in grouped(stored, name).items()} == grouped(merged, name)


def plan_of(run: Run) -> Plan:
    """The plan that the run was made with: these folders hold no plan of their own."""
    return load_plan(run.options["plan_source"], run.options["overrides"])


def test_a_long_run_is_judged_as_a_short_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = []
    for long_bytes in (1 << 40, 0):
        monkeypatch.setattr(runs, "LONG_BYTES", long_bytes)
        directory = tmp_path / f"{long_bytes}" / "run"
        (directory / "journal").mkdir(parents=True)
        (directory / "journal" / "all.jsonl").write_bytes(lzma.decompress(JOURNAL.read_bytes()))
        run = Run.open(directory)
        assert isinstance(run.lines, StoredJournal) is (long_bytes == 0)
        scenario = library.find(str(run.options["scenario"]))
        judge(directory, list(scenario.checks(setting_of(run.options, plan_of(run)))), scenario.story)
        pages.append([(directory / name).read_text() for name in ("verdict.json", "summary.txt", "journal.jsonl")])
    assert pages[0] == pages[1]


@pytest.mark.slow
def test_a_stored_journal_takes_a_fraction_of_the_memory_of_parsed_lines(tmp_path: Path) -> None:
    """Two journals, one four times as long, each read in a process of its own."""
    line = {"t_ns": 1, "node": "a", "kind": "sample", "qps": [{"qp": n, "acked_bytes": n} for n in range(20)]}
    used = []
    for times in (10_000, 40_000):
        (tmp_path / "a.jsonl").write_text((json.dumps(line) + "\n") * times)
        read = (
            "import sys, tracemalloc, numpy; from pathlib import Path;"
            "from judging.run import StoredJournal; tracemalloc.start();"
            "stored = StoredJournal.of([Path(sys.argv[1])]);"
            "groups = stored.grouped(lambda line: line['kind']); print(tracemalloc.get_traced_memory()[1])"
        )
        words = [sys.executable, "-c", read, str(tmp_path / "a.jsonl")]
        used.append(int(subprocess.run(words, capture_output=True, text=True, check=True).stdout))
    assert used[1] < 40_000 * 200  # bytes a line; a parsed line takes some 5,000
    assert used[1] - used[0] < 30_000 * 200
