"""The Chrome trace event format (JSON object form), which Perfetto's viewer and trace processor read.

Format: "Trace Event Format", published by the Chromium project. Times are microseconds with three decimals, so that the
journal's nanoseconds stay whole. Events may come in any order, so nothing is kept but the names of tracks.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Arguments = Mapping[str, Any]
HEAD = b'{"displayTimeUnit":"ns","traceEvents":[\n'
TAIL = b"\n]}\n"


class Tracks:
    """Numbers of processes and threads by name, and the events that introduce them. Numbers count from 1."""

    def __init__(self) -> None:
        self._processes: dict[str, int] = {}
        self._threads: dict[tuple[int, str], int] = {}
        self._spans = 0

    def process(self, name: str, order: int) -> tuple[int, list[str]]:
        """The number of a process, and the events to write before its first use. A small `order` is drawn above."""
        if name in self._processes:
            return self._processes[name], []
        pid = self._processes[name] = len(self._processes) + 1
        return pid, [
            metadata("process_name", pid, 0, {"name": name}),
            metadata("process_sort_index", pid, 0, {"sort_index": order}),
        ]

    def thread(self, pid: int, name: str) -> tuple[int, list[str]]:
        """The number of a thread within the trace, and the event to write before its first use."""
        key = (pid, name)
        if key in self._threads:
            return self._threads[key], []
        tid = self._threads[key] = len(self._threads) + 1
        return tid, [metadata("thread_name", pid, tid, {"name": name})]

    def span(self) -> int:
        """A new number for a span that may overlap others."""
        self._spans += 1
        return self._spans


def metadata(what: str, pid: int, tid: int, arguments: Arguments) -> str:
    """A name or an order of a process or thread."""
    return json.dumps({"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": arguments})


def slice_(name: str, pid: int, tid: int, start_ns: int, length_ns: int, category: str, arguments: Arguments) -> str:
    """A span of a thread ("complete" event). Spans of one thread must nest."""
    return _event("X", name, pid, tid, start_ns, category, arguments, f',"dur":{microseconds(length_ns)}')


def overlapping(
    name: str, pid: int, tid: int, start_ns: int, stop_ns: int, category: str, arguments: Arguments, number: int
) -> list[str]:
    """A span that may overlap any other ("nestable async" events); `number` tells it from the others."""
    local = f',"id2":{{"local":"{number:#x}"}}'
    return [
        _event("b", name, pid, tid, start_ns, category, arguments, local),
        _event("e", name, pid, tid, stop_ns, category, {}, local),
    ]


def instant(name: str, pid: int, tid: int, t_ns: int, category: str, arguments: Arguments, *, everywhere: bool) -> str:
    """A moment of a thread, or of the whole trace."""
    return _event("i", name, pid, tid, t_ns, category, arguments, ',"s":"g"' if everywhere else ',"s":"t"')


def counter(name: str, pid: int, t_ns: int, values: Mapping[str, int | float]) -> str:
    """The values of one counter of a process from `t_ns` on, by series."""
    return _event("C", name, pid, 0, t_ns, "counter", values, "")


def microseconds(ns: int) -> str:
    """Nanoseconds as a JSON number of microseconds, exact."""
    sign = "-" if ns < 0 else ""
    return f"{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"


def document(events: Iterable[str]) -> Iterator[bytes]:
    """The file, in pieces."""
    yield HEAD
    separator = ""
    for event in events:
        yield f"{separator}{event}".encode()
        separator = ",\n"
    yield TAIL


def _event(phase: str, name: str, pid: int, tid: int, t_ns: int, category: str, arguments: Arguments, more: str) -> str:
    told = json.dumps(arguments, separators=(",", ":"))
    return (
        f'{{"ph":"{phase}","name":{json.dumps(name)},"cat":"{category}","pid":{pid},"tid":{tid},'
        f'"ts":{microseconds(t_ns)}{more},"args":{told}}}'
    )
