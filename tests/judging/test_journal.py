"""The journal survives what kills its writers, and merges by time."""

import json
from pathlib import Path

import pytest

from common.journal import Journal
from judging.journal import fault_of, merge, read_file, write_merged


def test_lines_of_several_writers_merge_by_time(tmp_path: Path) -> None:
    clock = iter([30, 10, 20])
    first = Journal(tmp_path / "a.jsonl", "a", lambda: next(clock))
    second = Journal(tmp_path / "b.jsonl", "b", lambda: next(clock))
    first.write("x")
    second.write("y")
    second.write("z", t_ns=40)
    lines = merge([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert [(line["t_ns"], line["node"], line["kind"]) for line in lines] == [
        (10, "b", "y"),
        (30, "a", "x"),
        (40, "b", "z"),
    ]


def test_a_torn_last_line_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"t_ns": 1, "node": "a", "kind": "x"}\n{"t_ns": 2, "no')
    assert [line["t_ns"] for line in read_file(path)] == [1]


def test_an_unreadable_line_becomes_an_error_line_and_the_rest_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
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
    write_merged(lines, tmp_path / "journal.jsonl")
    assert read_file(tmp_path / "journal.jsonl") == lines
    assert json.loads((tmp_path / "journal.jsonl").read_text()) == lines[0]
