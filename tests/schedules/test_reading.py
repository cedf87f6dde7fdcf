"""Files: their endings, what is no text, and the memory that a long one takes."""

import tracemalloc
from pathlib import Path

import pytest

from schedules.errors import ScheduleError
from schedules.lines import FILE_BYTES_MAX
from schedules.reading import digest_of, read, shared


def test_a_file_is_read_by_its_ending(tmp_path: Path):
    file = tmp_path / "a.cm"
    file.write_bytes(b"\xef\xbb\xbfNodes 2\r\nConnections 1\r\n0->1 start 0 size 5\r\n")
    assert read(file).messages == 1
    with pytest.raises(ScheduleError, match=r"must end in \.cm or \.goal"):
        read(tmp_path / "a.txt")


def test_what_cannot_be_read_is_named(tmp_path: Path):
    with pytest.raises(ScheduleError, match=r"gone\.cm: no such file"):
        read(tmp_path / "gone.cm")
    (tmp_path / "b.goal").write_bytes(b"num_ranks 2\nrank 0 {\n\xff\xfe")
    with pytest.raises(ScheduleError, match=r"b\.goal:\d: the file must be UTF-8 text"):
        read(tmp_path / "b.goal")
    (tmp_path / "c.cm").write_text("Nodes 2\n" + "x" * 70_000)
    with pytest.raises(ScheduleError, match=r"c\.cm:2: a line must have fewer than 65536 characters"):
        read(tmp_path / "c.cm")


@pytest.mark.parametrize("name", ["long.cm", "long.goal"])
def test_a_file_above_the_limit_is_refused_unread(name: str, tmp_path: Path):
    with (tmp_path / name).open("wb") as file:
        file.truncate(FILE_BYTES_MAX + 1)
    for reader in (read, digest_of):
        with pytest.raises(ScheduleError, match=rf"{name}: must have at most 536870912 bytes \(got 536870913\)$"):
            reader(tmp_path / name)


def test_a_file_that_changes_during_a_run_is_refused(tmp_path: Path):
    file = tmp_path / "a.cm"
    file.write_text("Nodes 2\nConnections 1\n0->1 start 0 size 5\n")
    before = digest_of(file)
    assert shared(file, before) is shared(file, before)
    file.write_text("Nodes 2\nConnections 1\n0->1 start 0 size 6\n")
    shared.cache_clear()
    with pytest.raises(ScheduleError, match="must stay as it is during a run"):
        shared(file, before)


def test_a_long_file_takes_the_memory_of_columns_and_not_of_objects(tmp_path: Path):
    count = 10_000
    file = tmp_path / "long.cm"
    with file.open("w") as out:
        out.write(f"Nodes 1000\nConnections {count}\n")
        out.writelines(f"{n % 999}->{n % 999 + 1} id {n + 1} start 0 size {n + 1}\n" for n in range(count))
    tracemalloc.start()
    assert read(file).messages == count
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 2 * count * 80  # an operation as a Python object with seven fields takes more than 500
