"""Lines of a run on their way to the page, in bounds also where a lab lives for long."""

import json
import resource
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.traffic import JOURNAL_BYTES
from common.journal import Journal
from judging.journal import merge
from page import feed as feeds
from page.feed import LIVE_LINES_MAX, Feed
from page.live import ChangedCounters
from topo.planfile import load_plan


def line(t_ns: int, **fields: object) -> bytes:
    return json.dumps({"t_ns": t_ns, "node": "h0", "kind": "step", **fields}).encode() + b"\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "journal").mkdir()
    return tmp_path


def numbers(feed: Feed) -> list[int]:
    return [json.loads(text)["t_ns"] for text in feed.lines]


def test_a_recorded_run_is_read_whole_and_in_order_of_time(run: Path) -> None:
    feed = Feed(run)
    feed.poll()
    assert [json.loads(text) for text in feed.lines] == merge(sorted((run / "journal").glob("*.jsonl")))[0]
    assert feed.over()


def test_a_run_without_its_parts_is_read_from_its_merged_journal_and_a_folder_without_it_refused(run, tmp_path) -> None:
    (tmp_path / "journal.jsonl").write_bytes((run / "journal.jsonl").read_bytes())
    assert Feed(tmp_path).poll() == len((run / "journal.jsonl").read_text().splitlines())
    (tmp_path / "journal.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match="is not a run"):
        Feed(tmp_path)


def test_lines_that_come_later_are_found_in_every_file(folder: Path) -> None:
    feed = Feed(folder)
    assert feed.poll() == 0
    (folder / "journal" / "h0.jsonl").write_bytes(line(5))
    (folder / "journal" / "h1.jsonl").write_bytes(line(4))
    assert feed.poll() == 2
    assert numbers(feed) == [4, 5]
    with (folder / "journal" / "h0.jsonl").open("ab") as file:
        file.write(line(9))
    assert feed.poll() == 3
    assert numbers(feed) == [4, 5, 9]
    assert not feed.over()
    (folder / "verdict.json").write_text("{}")
    assert feed.over()


def test_a_line_that_is_still_being_written_waits_for_its_end(folder: Path) -> None:
    path = folder / "journal" / "h0.jsonl"
    path.write_bytes(line(1) + line(2)[:10])
    feed = Feed(folder)
    assert feed.poll() == 1
    path.write_bytes(line(1) + line(2))
    assert feed.poll() == 2


def test_batches_hold_every_line_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "BATCH_LINES", 3)
    (folder / "journal" / "h0.jsonl").write_bytes(b"".join(line(t) for t in range(8)))
    feed = Feed(folder)
    feed.poll()
    found = [json.loads(feed.batch(start)) for start in (0, 3, 6)]
    assert [len(batch) for batch in found] == [3, 3, 2]
    assert [one["t_ns"] for batch in found for one in batch] == list(range(8))


def test_a_viewer_goes_on_behind_the_last_line_that_it_has(folder: Path) -> None:
    (folder / "journal" / "h0.jsonl").write_bytes(line(1) + line(2))
    feed = Feed(folder)
    feed.poll()
    assert feed.resumed(f"{feed.epoch}-1") == 1
    assert feed.resumed(f"{feed.epoch}-99") == 2


@pytest.mark.parametrize(
    "ident", ["", "-", "1", "beef-1", "-1", "{epoch}-", "{epoch}--1", "{epoch}-1e3", "{epoch}-²", "{epoch}-" + "9" * 40]
)
def test_an_id_of_another_server_or_of_nobody_begins_anew(folder: Path, ident: str) -> None:
    feed = Feed(folder)
    assert feed.resumed(ident.format(epoch=feed.epoch)) is None


@pytest.mark.parametrize(
    "bad",
    [
        '{"packet": 3, "t_', "[]", "5", "{}", '{"packet": "x", "bytes": 1}', '{"packet": 8}', "[" * 100_000,
        '{"packet": NaN}', "not json", "[1]", '{"t_ns": "soon", "node": "h0", "kind": "x"}', "\xff\xfe",
    ],
)  # fmt: skip
def test_a_bad_line_of_the_packet_log_or_a_journal_is_left_out(bad: str, tmp_path: Path) -> None:
    good = {"packet": 0, "t_ns": 5, "bytes": 1, "bytes_in": 1, "fate": "sent"}
    line = {"t_ns": 1, "node": "h0", "kind": "process"}
    (tmp_path / "journal").mkdir()
    for place, other in (("packets.jsonl", good), ("journal/h0.jsonl", line)):
        (tmp_path / place).write_text(f"{bad}\n{json.dumps(other)}\n", encoding="latin-1")
    with closing(Feed(tmp_path)) as feed:
        assert feed.poll() == 2


def test_a_feed_of_a_living_lab_is_bounded_and_keeps_what_tells_of_states(folder: Path) -> None:
    feed = Feed(folder, lines_max=1000)
    epochs = {feed.epoch}
    (folder / "journal" / "h0.jsonl").touch()
    with (folder / "journal" / "h0.jsonl").open("ab") as file:
        for t_ns in range(100_000):
            kind = "note" if t_ns % 1000 == 0 else "sample"
            file.write(json.dumps({"t_ns": t_ns, "node": "h0", "kind": kind}, separators=(",", ":")).encode() + b"\n")
            if t_ns % 100 == 99:
                file.flush()
                assert feed.poll() <= 1000
                epochs.add(feed.epoch)
    assert len(epochs) > 100  # every time that lines were forgotten, viewers begin anew
    kept = [json.loads(text) for text in feed.lines]
    assert [line["t_ns"] for line in kept if line["kind"] == "note"] == list(range(0, 100_000, 1000))
    assert [line["t_ns"] for line in kept] == sorted(line["t_ns"] for line in kept)
    assert kept[-1]["t_ns"] == 99_999


def test_a_feed_follows_a_journal_of_two_files(folder: Path) -> None:
    clock = iter(range(10_000))
    journal = Journal(folder / "journal" / "h0.jsonl", "h0", clock=lambda: next(clock), bytes_max=5000)
    feed = Feed(folder)
    for _ in range(300):
        for _ in range(10):
            journal.write("step")
        feed.poll()
    assert numbers(feed) == list(range(3000))


def test_a_carriage_return_ends_no_event(folder: Path) -> None:
    (folder / "journal" / "h0.jsonl").write_bytes(line(1).replace(b"\n", b"\r\n") + line(2).replace(b"\n", b"\r\n"))
    feed = Feed(folder)
    feed.poll()
    assert b"\r" not in feed.batch(0)
    assert [one["t_ns"] for one in json.loads(feed.batch(0))] == [1, 2]


DAYS, WEEKS = 1_000_000, 10_000_000
"""Lines that eight hosts write in a day and a half and in two weeks."""
QP = {
    "qp": 17, "peer": "h3", "acked_bytes": 1 << 40, "cwnd_bytes": 1 << 16, "inflight_bytes": 1 << 15,
    "rtt_ns": 36_000_000,
}  # fmt: skip
PORT = {"port": 1, "tx_packets": 1 << 30, "tx_bytes": 1 << 40, "rx_packets": 1 << 30, "rx_bytes": 1 << 40}
SAMPLE: dict[str, Any] = {"ports": [PORT] * 4, "qps": [QP] * 4}
SECOND_NS = 1_000_000_000
LOOK_S = 50
"""Seconds of the lab between two looks; a file turns over after some hundred lines."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "lines", [DAYS, pytest.param(WEEKS, marks=pytest.mark.by_hand("six minutes, and a tenth of them says the same"))]
)
def test_millions_of_lines_of_a_living_lab_leave_files_and_memory_bounded(lines: int, tmp_path) -> None:
    hosts = list(load_plan("lab").hosts())
    (tmp_path / "run" / "journal").mkdir(parents=True)
    (agents := tmp_path / "agents").mkdir()
    now_ns = 0
    journals = [
        Journal(agents / f"{host}.jsonl", str(host), lambda: now_ns, bytes_max=JOURNAL_BYTES, lossy=True)
        for host in hosts
    ]
    feed = Feed(tmp_path / "run", agents, LIVE_LINES_MAX)
    written, most_lines, most_files = 0, 0, 0
    grown_kb = []
    while written < lines:
        for _ in range(LOOK_S):
            now_ns += SECOND_NS
            for journal in journals:
                journal.write("sample", **SAMPLE)
        written += LOOK_S * len(journals)
        most_lines = max(most_lines, feed.poll())
        most_files = max(most_files, sum(file.stat().st_size for file in agents.iterdir()))
        grown_kb.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    feed.close()
    assert most_lines <= LIVE_LINES_MAX
    assert most_files <= 2 * JOURNAL_BYTES * len(hosts)
    warm = grown_kb[3 * LIVE_LINES_MAX // (LOOK_S * len(hosts))]  # the window has been full three times by then
    assert grown_kb[-1] < 1.1 * warm
    print(f"{written:,} lines, {most_lines:,} kept, {most_files >> 20} MiB of files, {grown_kb[-1] >> 10} MiB resident")


LOOK_NS = 500_000_000


def test_a_counter_that_rests_is_journalled_before_its_next_change_and_once_after_it(tmp_path) -> None:
    counted = [0, 0, 0, 70, 90, 90, 90, 90, 100, 100, 100]
    journal = Journal(tmp_path / "switches.jsonl", "lab")
    counters = ChangedCounters(journal)
    for look, packets in enumerate(counted):
        counters.look("p0l0", look * LOOK_NS, [{"port": 1, "tx_packets": packets}])
    counters.look("p0l1", 0, [])
    lines = [json.loads(line) for line in (tmp_path / "switches.jsonl").read_text().splitlines()]
    told = [(line["t_ns"] // LOOK_NS, line["ports"][0]["tx_packets"]) for line in lines if line["device"] == "p0l0"]
    assert told == [(0, 0), (1, 0), (2, 0), (3, 70), (4, 90), (5, 90), (7, 90), (8, 100), (9, 100)]
    journal.close()
