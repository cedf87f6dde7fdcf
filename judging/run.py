"""A finished (or interrupted) run, read from its journal: phases, faults and lines by kind."""

from __future__ import annotations

import mmap
import os
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload

from common import plain_file
from common.journal import Line
from judging import units
from judging.arrays import Places, np
from judging.journal import checked, encoded, merge, scan, write_merged


# The journal of a long run, which stays on disk: a line is parsed each time that it is read.
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
                    texts.append(encoded(line))
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
        return checked(plain_file.parse_json(self._text(place)))

    def _text(self, place: int) -> bytes:
        text, start, length = (int(value) for value in self._index[place])
        return self._texts[text][start : start + length]

    def texts(self) -> Iterator[bytes]:
        """Each line as its file has it."""
        return map(self._text, range(len(self)))

    def grouped(self, name: Callable[[Line], str | None]) -> dict[str, Sequence[Line]]:
        places: dict[str, array[int]] = defaultdict(lambda: array("q"))
        for place, line in enumerate(self):
            if (group := name(line)) is not None:
                places[group].append(place)
        return {
            group: StoredJournal(self._texts, self._index[np.frombuffer(lines, np.int64)])
            for group, lines in places.items()
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


BINS_MAX = 20_000_000
SECOND_NS = 1_000_000_000
LONG_BYTES = 128 << 20  # of journals: parsed, they take four times that
RUNNER = "runner"


@dataclass(frozen=True, slots=True)
class Span:
    """Something with a name, a beginning and an end on the run's clock."""

    name: str
    start_ns: int
    stop_ns: int

    @property
    def length_ns(self) -> int:
        """How long it lasted."""
        return self.stop_ns - self.start_ns

    def contains(self, t_ns: int) -> bool:
        return self.start_ns <= t_ns < self.stop_ns

    def count(self, bin_ns: int) -> int:
        """How many whole bins lie in it. ValueError for more than anybody looks at: a journal may hold any times."""
        bins = self.length_ns // bin_ns
        if bins > BINS_MAX:
            raise ValueError(f"{self.name}: must be at most {BINS_MAX:,} times {bin_ns:,} ns long (got {bins:,} times)")
        return bins


@dataclass(frozen=True, slots=True)
class FaultSpan:
    """One fault: `stop_ns` is when it was undone, or None when it stayed."""

    verb: str
    target: str
    arguments: Mapping[str, Any]
    start_ns: int
    stop_ns: int | None
    by_hand: bool = False  # not of the timeline: a person injected it during the run

    @property
    def title(self) -> str:
        details = [f"{key}={value}" for key, value in sorted(self.arguments.items())] + ["by hand"] * self.by_hand
        return f"{self.verb} {self.target}" + (f" ({', '.join(details)})" if details else "")


def fault_spans(lines: Iterable[Line]) -> list[FaultSpan]:
    """Faults from `fault` lines: those of the runner, and those of the lab that the runner did not announce.

    The runner journals each of its faults first; the lab journals every fault when it carries the fault out. So a line
    of the lab without a line of the runner before it is a fault that a person injected by hand. A fault that begins
    again, such as loss at another rate, takes the place of the one before.
    """
    spans: list[FaultSpan] = []
    opened: dict[tuple[str, ...], int] = {}
    announced: Counter[tuple[str, ...]] = Counter()
    for line in lines:
        key = (str(line.get("verb")), *ends(str(line.get("target"))))
        state = str(line.get("state"))
        by_hand = line["node"] != RUNNER
        if not by_hand:
            announced[(*key, state)] += 1
        elif announced[(*key, state)]:
            announced[(*key, state)] -= 1
            continue
        if key in opened:
            index = opened.pop(key)
            spans[index] = replace(spans[index], stop_ns=int(line["t_ns"]))
        if state == "begin":
            opened[key] = len(spans)
            arguments = line.get("arguments") or {}
            spans.append(FaultSpan(key[0], str(line["target"]), arguments, int(line["t_ns"]), None, by_hand))
    return spans


def ends(target: str) -> tuple[str, ...]:
    """A target without the order in which the ends of a link are named; the direction of a one-way fault stays."""
    return (target,) if ">" in target else tuple(sorted(re.split("[-–]", target)))


def line_count(files: Iterable[Path]) -> int:
    """The lines in all files, whole or torn. TooLongLineError for a file that seems to have none."""
    count = 0
    for path in files:
        before = count
        with plain_file.open_plain(path) as file:
            while block := file.read(plain_file.LINE_BYTES_MAX):
                newlines = block.count(b"\n")
                if not newlines and len(block) == plain_file.LINE_BYTES_MAX:
                    raise plain_file.TooLongLineError(path, count - before + 1)
                count += newlines
    return count


def journal_files(directory: Path) -> list[Path]:
    """`journal/*.jsonl` of a run directory, or `journal.jsonl` if the parts are gone or incomplete.

    FileNotFoundError when there is neither.
    """
    plain_file.check_folder(directory / "journal")
    parts = sorted((directory / "journal").glob("*.jsonl"))
    merged = [path for path in (directory / "journal.jsonl",) if os.path.lexists(path)]
    if not parts and not merged:
        raise FileNotFoundError(f"{directory} is not a run: it has neither journal/*.jsonl nor journal.jsonl")
    # A merged journal with more lines than its parts was made when these were whole.
    return merged if not parts or line_count(merged) > line_count(parts) else parts


class Run:
    """Accessors over the merged lines of one run. Times are the journal's own; `seconds` are since its first phase."""

    def __init__(self, lines: Sequence[Line], directory: Path | None = None, texts: Sequence[bytes] = ()) -> None:
        self.lines = lines
        self.texts = texts
        """The lines as their files have them; none where these stay on disk."""
        self.directory = directory
        self.stalls: list[Any] | None = None  # kept by `judging.measures.stalls`
        self.waits: list[Any] | None = None  # kept by `judging.measures.stalls`
        self.totals: dict[str, Any] = {}  # by host, kept by `judging.measures.totals`

    @classmethod
    def open(cls, directory: Path) -> Run:
        """Read the journals of a run directory; those of a long run stay on disk."""
        files = journal_files(directory)
        long = sum(path.lstat().st_size for path in files) > LONG_BYTES
        if long:
            return cls(StoredJournal.of(files), directory)
        lines, texts = merge(files)
        return cls(lines, directory, texts)

    def write(self, path: Path) -> None:
        """All lines in one file."""
        write_merged(self.lines.texts() if isinstance(self.lines, StoredJournal) else self.texts, path)

    @cached_property
    def by_kind(self) -> dict[str, Sequence[Line]]:
        return grouped(self.lines, lambda line: str(line["kind"]))

    def kind(self, kind: str) -> Sequence[Line]:
        """The lines of a kind in order of time, none if there are none."""
        return self.by_kind.get(kind, ())

    @cached_property
    def options(self) -> dict[str, Any]:
        """All options of the run, merged in the order in which they were journalled."""
        merged: dict[str, Any] = {}
        for line in self.kind("options"):
            merged.update({key: value for key, value in line.items() if key not in ("t_ns", "node", "kind")})
        return merged

    @cached_property
    def end_ns(self) -> int:
        """The time of the last line."""
        return int(self.lines[-1]["t_ns"]) if self.lines else 0

    @cached_property
    def start_ns(self) -> int:
        """When the first phase began, or the time of the first line."""
        starts = [line["t_ns"] for line in self.kind("phase") if line.get("state") == "start"]
        return int(min(starts)) if starts else (int(self.lines[0]["t_ns"]) if self.lines else 0)

    @property
    def span(self) -> Span:
        """From the first phase to the last line."""
        return Span("run", self.start_ns, self.end_ns)

    @property
    def judged(self) -> Span:
        """From the first phase to the end of the last; after that, workloads only drain."""
        return Span("run", self.start_ns, max((span.stop_ns for span in self.phases.values()), default=self.end_ns))

    @cached_property
    def phases(self) -> dict[str, Span]:
        """Phases by name; one without a stop line ends with the journal."""
        phases: dict[str, Span] = {}
        for line in self.kind("phase"):
            name, t_ns = str(line.get("name")), int(line["t_ns"])
            if line.get("state") == "start":
                phases[name] = Span(name, t_ns, self.end_ns)
            elif name in phases:
                phases[name] = Span(name, phases[name].start_ns, t_ns)
        return phases

    @cached_property
    def faults(self) -> list[FaultSpan]:
        """Faults in order of their beginning: the timeline's, and what people did by hand meanwhile."""
        return fault_spans(self.kind("fault"))

    @cached_property
    def pace(self) -> float:
        """Seconds of the run to a second of lab time, in which scenarios and checks are written."""
        return float(self.options.get("pace") or 1.0)

    def ns(self, seconds: float) -> int:
        """Seconds of lab time, in the journal's nanoseconds."""
        return round(seconds * self.pace * SECOND_NS)

    @cached_property
    def unit(self) -> tuple[str, int]:
        """The unit in which a report tells time, and its length in nanoseconds."""
        return units.unit(self.pace)

    @property
    def unit_name(self) -> str:
        return {"s": "seconds"}.get(self.unit[0], self.unit[0])

    @cached_property
    def rate_unit(self) -> tuple[str, float]:
        """The unit in which a chart shows rates, and its bits a second."""
        return ("Mb/s", 1e6) if self.unit[0] == "s" else ("Gb/s", 1e9)

    def place(self, t_ns: int) -> float:
        """The time since the first phase began, in the report's unit."""
        return (t_ns - self.start_ns) / self.unit[1]

    def clock(self, t_ns: int) -> str:
        """The same in words."""
        return self.lasting(t_ns - self.start_ns, 2)

    def lasting(self, ns: float, digits: int = 1) -> str:
        """A length of time in the report's unit, with so many digits when that is the second."""
        return units.lasting(ns, self.pace, digits)

    def seconds(self, t_ns: int) -> float:
        """Seconds since the first phase began: the time that a reader sees."""
        return (t_ns - self.start_ns) / SECOND_NS

    @cached_property
    def agent_samples(self) -> dict[str, Sequence[Line]]:
        """`sample` lines of agents, by host."""
        return grouped(self.kind("sample"), lambda line: str(line["node"]) if "qps" in line else None)

    @cached_property
    def switch_samples(self) -> dict[str, Sequence[Line]]:
        """`sample` lines of switches, by device name."""
        return grouped(self.kind("sample"), lambda line: str(line["device"]) if "device" in line else None)

    def within(self, span: Span, kind: str) -> Iterable[Line]:
        """The lines of a kind that were written in a span."""
        return (line for line in self.kind(kind) if span.contains(line["t_ns"]))
