"""The stream of journal lines: what is there, what comes, and where a viewer goes on."""

import json
from pathlib import Path

import pytest

from common.journal import Journal
from judging.journal import merge
from page import feed as feeds
from page.feed import Feed


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


@pytest.mark.parametrize(
    "bad", [b"not json\n", b"[1]\n", b'{"t_ns": "soon", "node": "h0", "kind": "x"}\n', b"\xff\xfe\n"]
)
def test_a_bad_line_costs_no_other_line(folder: Path, bad: bytes) -> None:
    (folder / "journal" / "h0.jsonl").write_bytes(line(1) + bad + line(2))
    feed = Feed(folder)
    feed.poll()
    assert numbers(feed) == [1, 2]


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
        '{"packet": NaN}',
    ],
)  # fmt: skip
def test_a_bad_line_of_the_packet_log_or_a_journal_is_left_out(bad: str, tmp_path: Path) -> None:
    good = {"packet": 0, "t_ns": 5, "bytes": 1, "bytes_in": 1, "fate": "sent"}
    line = {"t_ns": 1, "node": "h0", "kind": "process"}
    (tmp_path / "journal").mkdir()
    (tmp_path / "packets.jsonl").write_text(f"{bad}\n{json.dumps(good)}\n")
    (tmp_path / "journal" / "h0.jsonl").write_text(f"{bad}\n{json.dumps(line)}\n")
    feed = Feed(tmp_path)
    try:
        assert feed.poll() == 2
    finally:
        feed.close()


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
