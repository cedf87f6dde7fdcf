"""Incidents for tests: by hand, on the smallest fabric, and a session that is closed again."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

from operations.incident.draw import Hidden, Incident, draw, fabric, load, place
from operations.incident.kind import KINDS
from operations.incident.session import IncidentSession
from running.directory import RunDirectory

TINY = fabric(1)


def hiding(*hidden: Hidden, level: int = 3, seed: int = 5) -> Incident:
    """An incident on the smallest fabric with these faults, without oddities."""
    workloads = tuple(load(TINY, level, TINY.host("h2")))
    return Incident(seed, level, TINY, hidden, (), (), workloads)


def one_of(kind: str, seed: int = 3, level: int | None = None) -> Hidden:
    """A fault of a kind on the smallest fabric."""
    spec = KINDS[kind]
    found = place(Random(f"{kind} {seed}"), TINY, spec, level or spec.level, TINY.host("h2"), set())
    return replace(found, onset_s=1.0)


def drawn_with(kind: str, level: int, first: int = 0) -> Incident:
    """The first drawn incident of a level that hides this kind."""
    drawn = (draw(seed, level) for seed in range(first, first + 2000))
    return next(incident for incident in drawn if kind in {one.kind for one in incident.hidden})


@contextmanager
def session(incident: Incident, folder: Path, called_s: float = 4.0) -> Iterator[IncidentSession]:
    """The incident, called to; its world is closed at the end unless it is over."""
    opened = IncidentSession(incident, RunDirectory.create(folder, "incident", 1), called_s)
    try:
        yield opened
    finally:
        if not opened.over:
            opened.close()
