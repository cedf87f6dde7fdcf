"""One writer for every process: the lines of docs/contracts.md, whole and in order, and within their limits."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from common.files import open_growing
from common.journal import Journal
from common.plain_file import NotPlainError

CONTRACT = (Path(__file__).parents[2] / "docs" / "contracts.md").read_text()


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_has_its_time_node_and_kind_first(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", "h0", clock=lambda: 5)
    journal.write("x", a=[1])
    journal.write("x", node="h1")
    journal.write_at(3, "y", {"b": None})
    assert (tmp_path / "j").read_text().splitlines() == [
        '{"t_ns":5,"node":"h0","kind":"x","a":[1]}',
        '{"t_ns":5,"node":"h1","kind":"x"}',
        '{"t_ns":3,"node":"h0","kind":"y","b":null}',
    ]


def test_the_first_line_of_a_process_has_the_fields_of_the_contract(tmp_path: Path) -> None:
    row = re.search(r"^\| `process` \|[^|]*\|([^|]*)\|$", CONTRACT, re.MULTILINE)
    assert row is not None
    Journal(tmp_path / "j", "h0").write_process("agent")
    (line,) = lines(tmp_path / "j")
    assert list(line) == ["t_ns", "node", "kind", *(word.strip() for word in row[1].split(","))]
    assert (line["role"], line["pid"]) == ("agent", os.getpid())


def test_without_a_path_nothing_is_written_and_a_device_takes_a_journal() -> None:
    journal = Journal(None, "h0")
    journal.write("x")
    assert not journal.enabled
    journal.close()
    Journal("/dev/null", "h0").write("x")


def test_lines_of_threads_and_of_processes_do_not_mix(tmp_path: Path) -> None:
    journals = [Journal(tmp_path / "j", f"n{number}") for number in range(3)]
    threads = [Thread(target=lambda j=j: [j.write("x", fill="f" * 3000) for _ in range(200)]) for j in journals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines(tmp_path / "j")) == 600


def test_a_line_that_was_taken_in_part_does_not_swallow_the_next_one(tmp_path, monkeypatch) -> None:
    """A disk that is full for a moment: the kernel takes some bytes of a line and no more."""
    journal = Journal(tmp_path / "h0.jsonl", "h0", clock=lambda: 5)
    journal.write("first")
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:10]))
    with pytest.raises(OSError, match=r"No space left on device: '.*h0.jsonl'"):
        journal.write("torn")
    monkeypatch.setattr(os, "write", write)
    journal.write("last")
    first, torn, last = (tmp_path / "h0.jsonl").read_text().splitlines()
    assert json.loads(first)["kind"] == "first"
    assert torn == '{"t_ns":5,'
    assert json.loads(last)["kind"] == "last"


@pytest.mark.parametrize("dangling", [False, True])
def test_a_link_in_a_journals_place_is_refused(tmp_path: Path, dangling: bool) -> None:
    victim = tmp_path / "victim"
    if not dangling:
        victim.write_text("precious")
    (tmp_path / "j").symlink_to(victim)
    with pytest.raises(NotPlainError, match=r"/j must be a regular file .it is a symbolic link"):
        Journal(tmp_path / "j", "h0")
    assert victim.read_text() == "precious" if not dangling else not victim.exists()


def test_a_link_in_the_place_of_a_journals_next_file_and_a_fifo_in_its_own_are_refused_at_once(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "j.new").symlink_to(victim)
    journal = Journal(tmp_path / "j", "h0", bytes_max=50)
    with pytest.raises(NotPlainError, match=r"j\.new must be a regular file"):
        journal.write("x", text="a line that is longer than the file may be")
    assert victim.read_text() == "precious"
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(NotPlainError, match="must be a regular file"):
        Journal(tmp_path / "fifo", "h0")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(NotPlainError, match="must be a regular file"):
        Journal(tmp_path / "fifo", "h0")
    os.close(reader)


def test_a_log_that_begins_anew_is_emptied_and_others_grow(tmp_path: Path) -> None:
    for text, emptied in (("one", False), ("two", False), ("three", True)):
        with os.fdopen(open_growing(tmp_path / "log", emptied=emptied), "ab") as file:
            file.write(text.encode())
        assert (tmp_path / "log").read_text() == {"one": "one", "two": "onetwo", "three": "three"}[text]


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
