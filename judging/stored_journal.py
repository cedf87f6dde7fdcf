"""The journal of a long run, which stays on disk: a line is parsed each time that it is read."""

from __future__ import annotations

import json
import mmap
import os
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import overload

from common import plain_file
from common.journal import Line
from judging.arrays import Places, np
from judging.journal import checked, scan


class StoredJournal(Sequence[Line]):
    """Lines by time, like `journal.merge`. Some forty bytes of memory a line, where a parsed line takes kilobytes."""

    def __init__(self, texts: Sequence[bytes | mmap.mmap], index: Places) -> None:
        """`index` has a row for each line: number of the text, first byte, length."""
        self._texts = texts
        self._index = index

    @classmethod
    def of(cls, files: Iterable[Path]) -> StoredJournal:
        """The lines of all files. Lines that cannot be read are error lines, as everywhere."""
        texts: list[bytes | mmap.mmap] = []
        times, rows = array("q"), array("q")
        for path in files:
            number = len(texts)
            texts.append(mapped(path))
            for start, length, line in scan(texts[number], path):
                if length:
                    rows.extend((number, start, length))
                else:  # an error line is in no file: its text is made here
                    texts.append(json.dumps(line).encode())
                    rows.extend((len(texts) - 1, 0, len(texts[-1])))
                times.append(line["t_ns"])
        order = np.argsort(np.frombuffer(times, np.int64), kind="stable") if times else np.zeros(0, np.int64)
        return cls(texts, np.array(rows, np.int64).reshape(-1, 3)[order])

    def __len__(self) -> int:
        return len(self._index)

    @overload
    def __getitem__(self, place: int) -> Line: ...

    @overload
    def __getitem__(self, place: slice) -> StoredJournal: ...

    def __getitem__(self, place: int | slice) -> Line | StoredJournal:
        if isinstance(place, slice):
            return StoredJournal(self._texts, self._index[place])
        text, start, length = (int(value) for value in self._index[place])
        return checked(plain_file.parse_json(self._texts[text][start : start + length]))

    def __iter__(self) -> Iterator[Line]:
        return (self[place] for place in range(len(self)))

    def grouped(self, name: Callable[[Line], str | None]) -> dict[str, Sequence[Line]]:
        places: dict[str, array[int]] = defaultdict(lambda: array("q"))
        for place, line in enumerate(self):
            if (group := name(line)) is not None:
                places[group].append(place)
        return {
            group: StoredJournal(self._texts, self._index[np.frombuffer(found, np.int64)])
            for group, found in places.items()
        }


def mapped(path: Path) -> bytes | mmap.mmap:
    """The bytes of a file, which the kernel reads on access."""
    with plain_file.open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""


def grouped(lines: Sequence[Line], name: Callable[[Line], str | None]) -> dict[str, Sequence[Line]]:
    """Lines by the name that each gets; lines without a name are left out. Those of a stored journal stay on disk."""
    if isinstance(lines, StoredJournal):
        return lines.grouped(name)
    groups: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        if (group := name(line)) is not None:
            groups[group].append(line)
    return dict(groups)
