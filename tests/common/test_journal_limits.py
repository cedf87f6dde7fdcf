"""Journals that must not grow, and journals that must not end their writer."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from common.journal import Journal


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_bounded_journal_is_two_files_however_much_is_written(tmp_path: Path) -> None:
    path = tmp_path / "h0.jsonl"
    journal = Journal(path, "h0", clock=lambda: 0, bytes_max=10_000)
    journal.write_process("agent")
    for number in range(20_000):
        journal.write("sample", number=number)
        if not number % 1000:
            assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 20_000
    assert {file.name for file in tmp_path.iterdir()} == {"h0.jsonl", "h0.jsonl.1"}
    new, old = lines(path), lines(tmp_path / "h0.jsonl.1")
    assert new[0]["kind"] == old[0]["kind"] == "process"
    kept = [line["number"] for line in [*old[1:], *new[1:]]]
    assert kept == list(range(20_000 - len(kept), 20_000))


def test_a_bounded_journal_goes_on_in_a_file_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "h0.jsonl"
    path.write_text("x" * 900 + "\n")
    journal = Journal(path, "h0", clock=lambda: 0, bytes_max=1000)
    journal.write("sample", text="y" * 200)
    assert path.stat().st_size < 300
    assert (tmp_path / "h0.jsonl.1").stat().st_size == 901


FULL = """
import resource, signal, sys
from common.journal import Journal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = Journal(sys.argv[1], "h0", clock=lambda: 7, lossy=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
for number in range(100):
    journal.write("sample", number=number)
lost = journal.lost
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.write("sample", number=100)
print(lost, journal.lost)
"""


def test_a_lossy_journal_counts_what_a_full_disk_does_not_take_and_says_so_later(tmp_path: Path) -> None:
    path = tmp_path / "h0.jsonl"
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True)
    lost, again = map(int, done.stdout.split())
    assert lost == again > 50
    whole, torn = [], 0
    for text in path.read_text().splitlines():
        try:
            whole.append(json.loads(text))
        except ValueError:
            torn += 1
    assert torn <= 1  # the line that the limit has cut
    assert whole[-2] == {"t_ns": 7, "node": "h0", "kind": "lost", "lines": lost}
    assert whole[-1]["number"] == 100


def test_a_bounded_journal_whose_next_file_cannot_be_made_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "h0.jsonl"
    journal = Journal(path, "h0", clock=lambda: 0, bytes_max=100)
    journal.write("sample", text="a" * 60)
    (tmp_path / "h0.jsonl.new").mkdir()  # in the way
    with pytest.raises(OSError, match=r"h0\.jsonl\.new"):
        journal.write("sample", text="b" * 60)
    (tmp_path / "h0.jsonl.new").rmdir()
    journal.write("sample", text="c" * 60)
    assert [line["text"] for line in lines(path)] == ["c" * 60]
