"""The journal survives what kills its writers, merges by time, and reads from disk as from memory."""

import json
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from common.journal import Journal, Line
from judging import evidence, run as runs
from judging.journal import fault_of, merge, read_file
from judging.judge import judge, verdict_of
from judging.measures import stalls
from judging.reports import plots
from judging.run import SECOND_NS, Run, StoredJournal, grouped
from judging.verdict import Verdict
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
def test_a_stored_journal_holds_what_a_merged_journal_holds(files, torn, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("journal")
    paths = [folder / f"{number}.jsonl" for number in range(len(files))]
    for path, text in zip(paths, files, strict=True):
        path.write_bytes(text if torn else text + b"\n")
    stored, merged = StoredJournal.of(paths), merge(paths)[0]
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


def test_lines_of_several_writers_merge_by_time(tmp_path: Path) -> None:
    clock = iter([30, 10, 20])
    first = Journal(tmp_path / "a.jsonl", "a", lambda: next(clock))
    second = Journal(tmp_path / "b.jsonl", "b", lambda: next(clock))
    first.write("x")
    second.write("y")
    second.write("z", t_ns=40)
    lines, texts = merge([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert [(line["t_ns"], line["node"], line["kind"]) for line in lines] == [
        (10, "b", "y"),
        (30, "a", "x"),
        (40, "b", "z"),
    ]
    assert [json.loads(text) for text in texts] == lines


def test_a_torn_last_line_is_skipped_and_an_unreadable_one_an_error_and_the_rest_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"t_ns": 1, "node": "a", "kind": "x"}\n{"t_ns": 2, "no')
    assert [line["t_ns"] for line in read_file(path)] == [1]
    path.write_text('{"t_ns": 1, "node": "a", "kind": "x"}\nnonsense\n[]\n{"t_ns": 4, "node": "a", "kind": "y"}\n')
    lines = read_file(path)
    assert [line["kind"] for line in lines] == ["x", "error", "error", "y"]
    assert "a.jsonl:2" in lines[1]["message"]


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ({"qps": [{"qp": 1}], "ports": [{"port": 1}, {"port": 2}]}, ""),
        ({"qps": [{"qp": 1}, 5]}, "'qps' must be a list of objects"),
        ({"ports": 5}, "'ports' must be a list of objects"),
        ({"ports": [{"port": 1}, {"port": "2"}]}, "in 'ports', 'port' must be of type int (got '2')"),
    ],
)
def test_a_sample_is_read_only_if_each_part_of_it_can_be(sample: dict[str, object], said: str) -> None:
    assert fault_of({"t_ns": 1, "node": "h0", "kind": "sample", **sample}) == said


def test_the_merged_journal_reads_back_as_it_was(tmp_path: Path) -> None:
    lines = [{"t_ns": 1, "node": "a", "kind": "x", "extra": {"kept": [1, 2]}}]
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "a.jsonl").write_text(json.dumps(lines[0]) + "\nno line\n")
    run = Run.open(tmp_path)
    run.write(tmp_path / "journal.jsonl")
    assert read_file(tmp_path / "journal.jsonl") == run.lines
    assert json.loads((tmp_path / "journal.jsonl").read_text().splitlines()[0]) == lines[0]
    assert [line["kind"] for line in run.lines] == ["x", "error"]


Build = Callable[..., Run]
RAISED = "AlgorithmError: mine.py:17: ZeroDivisionError: division by zero (in congestion Mine.on_ack)"
CTRL_C = "KeyboardInterrupt: "


def broken_off(made_up: Build, at_s: float, message: str) -> Run:
    """A run of three phases, from 2 s to 24 s, that an exception ended at this time."""
    lines = [line for line in made_up().lines if int(line["t_ns"]) <= at_s * SECOND_NS]
    error = {"t_ns": round(at_s * SECOND_NS), "node": "runner", "kind": "error", "message": message, "fatal": True}
    return Run([*lines, error])


@pytest.mark.parametrize(
    ("at_s", "message", "said"),
    [
        (18, RAISED, f"the run was interrupted in phase 'faults': {RAISED}"),
        (18, CTRL_C, "the run was interrupted in phase 'faults'"),
        (18, "OSError: no space\n left", "the run was interrupted in phase 'faults': OSError: no space left"),
        (26, RAISED, f"the run was interrupted after its last phase: {RAISED}"),
        (26, CTRL_C, "the run was interrupted after its last phase"),
        (-1, RAISED, f"the run has no phases: it ended before it began: {RAISED}"),
        (-1, CTRL_C, "the run has no phases: it ended before it began"),
    ],
)
def test_a_run_that_was_broken_off_is_unknown_and_names_what_ended_it(at_s, message, said, made_up: Build) -> None:
    found = evidence.complete(broken_off(made_up, at_s, message))
    assert (found.holds, found.spoils, found.reason) == (None, True, said)


def test_another_error_after_the_last_phase_is_false(made_up: Build) -> None:
    found = evidence.complete(broken_off(made_up, 26, "RuntimeError: agent h3 died"))
    assert (found.holds, found.reason) == (False, "runner failed: RuntimeError: agent h3 died")


def test_a_run_without_the_journal_of_a_host_is_unknown(made_up: Build) -> None:
    """Its messages would count as never posted."""
    lines = made_up().lines
    hosts = {line["node"] for line in lines if line["kind"] == "process" and line["role"] == "agent"}
    options = {"t_ns": 0, "node": "runner", "kind": "options", "hosts": len(hosts)}
    assert evidence.complete(Run([*lines, options])).holds is True
    lost = evidence.complete(Run([line for line in [*lines, options] if line["node"] != min(hosts)]))
    assert (lost.holds, lost.spoils, lost.reason) == (None, True, f"1 of {len(hosts)} hosts have no journal")


JOURNALS = Path(__file__).parent / "journals"


def load(name: str) -> Run:
    with lzma.open(JOURNALS / f"{name}.jsonl.xz", "rt") as file:
        return Run([json.loads(line) for line in file])


def judged(run: Run) -> Verdict:
    scenario = library.find(str(run.options["scenario"]))
    return verdict_of(run, list(scenario.checks(setting_of(run.options, plan_of(run)))))


EXPECTED = {
    # 30.7 % of the line rate, once judged false: most of the phase spoilt, the machine 92 % busy
    "collision-freeze": ("unknown", "line rate", "the lab did not keep up"),
    # a broken transport under mild noise on a busy machine, at 4 Mb/s with messages of some six packets: each message
    # waits for a repair of its own
    "link-flap-roce-mild": ("unknown", "fault cost", "in steps of 13.3 round trips hosts mostly wait"),
    # both plateaus had as many stalls as not, and counted as measured, at 0 % of the reference: judged false
    "nic-port-freeze": ("unknown", "half at once", "known to within 6.9%: 4 stalls, the longest 508 ms"),
    # messages of some six packets at 4 Mb/s, judged false at 90.1 %: each loss was of a message's end, which takes two
    # round trips more to notice, and hosts waited for round trips even without faults
    "switch-reboot-slow": ("unknown", "load", "links carried 54% of their rate"),
    "link-flap-freeze": ("unknown", "fault cost", "4 stalls, the longest 799 ms at 17.73 s"),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_real_run_on_a_noisy_machine_is_what_it_was(name: str) -> None:
    word, check, reason = EXPECTED[name]
    verdict = judged(load(name))
    assert verdict.word == word, [finding for finding in verdict.findings if finding.holds is not True]
    assert reason in next(finding for finding in verdict.findings if finding.check == check).reason


def test_every_fixture_is_judged_and_small() -> None:
    files = {path.name.removesuffix(".jsonl.xz"): path for path in JOURNALS.glob("*.xz")}
    assert set(files) == set(EXPECTED)
    assert all(path.stat().st_size < 110_000 for path in files.values())


def test_without_the_evidence_of_lateness_the_transport_was_blamed() -> None:
    whole = load("collision-freeze")
    blind = Run([line for line in whole.lines if line["kind"] not in ("stall", "cpu")])
    assert next(f for f in judged(blind).findings if f.check == "line rate").holds is False


def test_stalls_of_a_real_run_name_hosts_switches_and_processors() -> None:
    run = load("collision-freeze")
    found = stalls.stalls(run)
    assert {"switches", "cpu0", "cpu1", "h0"} <= {who for stall in found for who in stall.who}
    assert "ms at" in evidence.machine(run).reason
    assert plots.STALL in plots.goodput_over_time([("mrc", run)])
