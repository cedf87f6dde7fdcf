"""Path health: the state of every path (EV of a QP) over time, from the transitions that agents journalled."""

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

from judging.run import Run

__all__ = ["PathKey", "histories", "in_state"]

GOOD = "GOOD"
PATHS_MAX = 1 << 16
"""Of a run's options, which may be anybody's: more than any plan of two even tiers has."""


@dataclass(frozen=True, slots=True)
class PathKey:
    """One path of one queue pair: `via` is the spine, or "local" under one leaf."""

    host: str
    peer: str
    plane: int
    via: str
    ev: int
    qp: int


@dataclass(frozen=True, slots=True)
class StateSpan:
    """A time in which a path was not GOOD, and why it was left."""

    state: str
    start_ns: int
    stop_ns: int
    cause: str
    open: bool = False  # whether no transition ended it


def histories(run: Run) -> dict[PathKey, list[StateSpan]]:
    """For every path that ever left GOOD, the spans in which it was not good."""
    changes: dict[PathKey, list[tuple[int, str, str]]] = defaultdict(list)
    for line in run.kind("ev"):
        key = PathKey(
            host=line["node"],
            peer=str(line.get("peer", "")),
            plane=int(line.get("plane", -1)),
            via=str(line.get("via") or "local"),
            ev=int(line["ev"]),
            qp=int(line.get("qp", 0)),
        )
        changes[key].append((int(line["t_ns"]), str(line["new"]).upper(), str(line.get("cause", ""))))
    result: dict[PathKey, list[StateSpan]] = {}
    for key, events in sorted(changes.items(), key=lambda item: (item[0].plane, item[0].via, item[0].host, item[0].ev)):
        spans = []
        for index, (t_ns, state, cause) in enumerate(events):
            last = index + 1 == len(events)
            stop_ns = run.end_ns if last else events[index + 1][0]
            if state not in (GOOD, "SKIP"):
                spans.append(StateSpan(state, t_ns, stop_ns, cause, last))
        result[key] = spans
    return result


@dataclass(frozen=True, slots=True)
class Level:
    """How many pairs of hosts had given a path up, between two instants."""

    start_ns: int
    stop_ns: int
    bad: int
    denied: int


def strips(run: Run) -> dict[tuple[int, str], list[Level]]:
    """For every path of the fabric (its plane and `via`), the times at which some sender had given it up.

    Of a fabric beyond two even tiers that is too large to name its ways, only those that were abandoned.
    """
    fabric = run.options.get("fabric") or {}
    if "topology" in fabric:
        every = [(int(plane), str(via)) for plane, via in fabric.get("ways", [])]
    else:
        planes, spines = int(fabric.get("planes", 0)), int(fabric.get("spines", 0))
        if planes * spines > PATHS_MAX:
            raise ValueError(f"fabric: planes × spines must be at most {PATHS_MAX:,} (got {planes * spines:,})")
        every = [(plane, f"p{plane}s{n}") for plane in range(planes) for n in range(spines)]
    changes: dict[tuple[int, str], list[tuple[int, int, int]]] = {key: [] for key in every}
    for path, spans in histories(run).items():
        for span in spans:
            denied = int(span.state == "DENIED")
            moments = changes.setdefault((path.plane, path.via), [])
            moments += [(span.start_ns, 1 - denied, denied), (span.stop_ns, denied - 1, -denied)]
    return {key: levels(moments) for key, moments in changes.items()}


def levels(changes: list[tuple[int, int, int]]) -> list[Level]:
    """Running sums of (time, bad, denied) changes, without the times when both are nothing."""
    result, bad, denied = [], 0, 0
    ordered = sorted(changes)
    for (start_ns, more_bad, more_denied), (stop_ns, _, _) in pairwise(ordered):
        bad, denied = bad + more_bad, denied + more_denied
        if stop_ns > start_ns and (bad or denied):
            result.append(Level(start_ns, stop_ns, bad, denied))
    return result


def in_state(run: Run, state: str, t_ns: int) -> list[PathKey]:
    """Paths that are in this state at an instant."""
    return [
        key
        for key, spans in histories(run).items()
        if any(span.state == state and span.start_ns <= t_ns < span.stop_ns for span in spans)
    ]


def not_good_at(run: Run, t_ns: int) -> list[PathKey]:
    """Paths that are ASSUMED_BAD or DENIED at an instant."""
    return [
        key
        for key, spans in histories(run).items()
        if any(span.start_ns <= t_ns and (t_ns < span.stop_ns or span.open) for span in spans)
    ]


def abandoned(run: Run) -> tuple[int, int]:
    """How many paths were ever abandoned, and for how long, all of them together (ns)."""
    kept = histories(run).values()
    return sum(bool(own) for own in kept), sum(span.stop_ns - span.start_ns for own in kept for span in own)
