"""The fate of each packet of a trial, written by the grader's side of a seam: the student's code cannot reach it."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from course.box.box import Box
from judging import Span


class SeamEvent(NamedTuple):
    """`kind` is sent, acked, trimmed, lost, probe, leave or back; `path` is a path's number."""

    at_ns: int
    kind: str
    path: int
    plane: int
    qp: int
    marked: bool = False


class Note(NamedTuple):
    """Of lab 8. `kind` is ports (those of `host` that are up), update (sent to `peer` by one port), or believes (the
    ports of `peer` that `host` takes to be up). Ports are planes."""

    at_ns: int
    kind: str
    host: str
    peer: str
    planes: tuple[int, ...]


@dataclass(slots=True)
class Log:
    """All events of one trial in order of time."""

    events: list[SeamEvent] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def of(self, kind: str, span: Span) -> Iterable[SeamEvent]:
        """The events of a kind in a span."""
        return (event for event in self.events if event.kind == kind and span.start_ns <= event.at_ns < span.stop_ns)

    def by_plane(self, kind: str, span: Span) -> Counter[int]:
        return Counter(event.plane for event in self.of(kind, span))

    def by_path(self, kind: str, span: Span) -> Counter[int]:
        return Counter(event.path for event in self.of(kind, span))

    def count(self, kind: str, span: Span) -> int:
        return sum(1 for _ in self.of(kind, span))


@dataclass(slots=True)
class Seat:
    """The shared state of the transport's classes at a seam: boxes with the student's class, what they log, a count."""

    another: Callable[[], Box]
    rtt_ns: int
    log: Log = field(default_factory=Log)
    windows: list[list[tuple[int, int]]] = field(default_factory=list)
    """Of lab 7: (ns, bytes), for each queue pair."""
    queue_pairs: int = 0

    def of_student(self, base: type[Any], *, boxes: bool) -> type[Any]:
        """The class of the transport that asks the student's. `boxes`: each object opens one; else all share one."""
        return type("OfStudent", (base,), {"seat": self, "box": None if boxes else self.another()})


def evenness(counts: Counter[int], of: int) -> float:
    """The smallest count as a share of the largest; 0 when one of the `of` has none."""
    if len(counts) < of or not counts:
        return 0.0
    return min(counts.values()) / max(counts.values())
