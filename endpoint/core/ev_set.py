"""The EVs of one QP: which are in rotation, which wait as backups, which are out, plane by plane (paper §2.1, §2.4).

A random subset of each plane's paths is active, the same number in every plane; what is left serves as backups. An EV
that goes out is replaced by a backup of its own plane, so that planes stay equally loaded; where there is no backup
the plane carries its share on what is left. An EV that comes back fills its plane up again or becomes a backup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from endpoint.core.config import NEVER
from endpoint.core.ev_state import SENDABLE, EvCause, EvState, transition
from endpoint.core.packet import Route
from endpoint.core.port import Port

PROBES_NEEDED_MAX = 16
PROBE_BACKOFF_MAX = 8
RELAPSE_PROBES = 32
"""An EV lost again within this many probe intervals of its return has relapsed."""

GOOD, SKIP, BAD, DENIED = EvState.GOOD, EvState.SKIP, EvState.ASSUMED_BAD, EvState.DENIED


class EvPath:
    """An EV and the path that the EV takes, as one QP sees them."""

    __slots__ = (
        "active",
        "answered",
        "backoff",
        "ev",
        "needed",
        "plane",
        "port",
        "probe_due_ns",
        "returned_ns",
        "route",
        "sent",
        "state",
        "streak",
    )

    def __init__(self, route: Route, plane: PlaneEvs, needed: int) -> None:
        self.route = route
        self.ev = route.ev
        self.port = route.port
        self.plane = plane
        self.state = GOOD
        self.active = False
        self.sent = 0
        self.needed = needed
        """Probes in a row that bring it back."""
        self.streak = 0
        self.answered = True
        self.backoff = 1
        self.probe_due_ns = 0
        self.returned_ns = -1


class PlaneEvs:
    """One plane's EVs of one QP."""

    __slots__ = ("_at", "_rng", "active", "backups", "bit", "number", "out", "port", "quota", "wanted")

    def __init__(self, port: Port, rng: Random) -> None:
        self.port = port
        self.bit = port.bit
        self.number = port.plane
        self.active: list[EvPath] = []
        """GOOD and SKIP, in the order of this scan."""
        self.backups: list[EvPath] = []
        self.out: list[EvPath] = []
        """ASSUMED_BAD and DENIED."""
        self.quota = 0
        self.wanted = True
        """Whether the port is up and the peer has not said that its own is down."""
        self._rng = rng
        self._at = 0

    def take(self) -> EvPath | None:
        """The next EV of the rotation, in a fresh pseudo-random order each scan.

        A resting EV is made GOOD again and passed over, at most one a packet (guidance of OCP MRC 11.2.2); when all
        others rest too, that one is used.
        """
        active = self.active
        count = len(active)
        restored: EvPath | None = None
        at = self._at
        for _ in range(count):
            if at >= count:
                self._rng.shuffle(active)
                at = 0
            path = active[at]
            at += 1
            if path.state is GOOD:
                if path is not restored:
                    self._at = at
                    return path
            elif restored is None:
                path.state = transition(path.state, EvCause.TURN)
                restored = path
        self._at = at
        return restored


class EvSet:
    """All planes. `on_change(path, old, cause)` is called after each transition to or from ASSUMED_BAD and DENIED."""

    def __init__(
        self,
        routes: Iterable[Route],
        rng: Random,
        *,
        active: int,
        backup: int,
        floor_share: float,
        probes_needed: int,
        probe_interval_ns: int,
        on_change: Callable[[EvPath, EvState, EvCause], None],
    ) -> None:
        self._rng = rng
        self._on_change = on_change
        self._probes_needed = probes_needed
        self._probe_interval_ns = probe_interval_ns
        self.paths: dict[int, EvPath] = {}
        by_port: dict[int, list[Route]] = {}
        for route in routes:
            by_port.setdefault(route.port.number, []).append(route)
        self.planes: list[PlaneEvs] = []
        share, spare = max(1, active // len(by_port)), backup // len(by_port)
        equal = min(share, *(len(rows) for rows in by_port.values())) if len(by_port) > 1 else share
        for number in sorted(by_port):
            rows = by_port[number]
            plane = PlaneEvs(rows[0].port, rng)
            chosen = rng.sample(rows, min(len(rows), equal + spare))
            paths = [EvPath(route, plane, probes_needed) for route in chosen]
            plane.active, plane.backups = paths[:equal], paths[equal:]
            plane.quota = len(plane.active)
            for path in plane.active:
                path.active = True
            self.planes.append(plane)
            self.paths.update((path.ev, path) for path in paths)
        self._floor_share = floor_share
        self.floor = 1
        """Silent loss takes no EV out of rotation when no more than this are left."""
        self.out_count = 0
        self.live: list[PlaneEvs] = []
        """Planes to spread over: wanted, and with an EV in rotation."""
        self.version = 0
        """Changes whenever `live` does, so that a selection can notice."""
        self.refresh()

    def refresh(self) -> None:
        """Find the live planes anew."""
        self.floor = max(1, int(sum(plane.quota for plane in self.planes if plane.wanted) * self._floor_share))
        live = [plane for plane in self.planes if plane.wanted and plane.active]
        if live != self.live:
            self.live = live
            self.version += 1

    def set_wanted(self, ports: int) -> None:
        """Use only planes whose port's bit is in `ports`."""
        for plane in self.planes:
            plane.wanted = bool(plane.bit & ports)
        self.refresh()

    def signal(self, path: EvPath, cause: EvCause, now_ns: int) -> None:
        """Apply a cause to an EV by the table, then move EVs between rotation, backups and the bench."""
        old = path.state
        if cause is EvCause.LOSS and old in SENDABLE and self._at_floor(path):
            cause = EvCause.LOSS_AT_FLOOR
        new = transition(old, cause)
        if new is old:
            return
        path.state = new
        if old in SENDABLE and new not in SENDABLE:
            self._remove(path, now_ns)
        elif new in SENDABLE and old not in SENDABLE:
            self._restore(path, cause, now_ns)
        elif new not in SENDABLE:
            path.streak = 0
        else:
            return
        self.refresh()
        self._on_change(path, old, cause)

    def _at_floor(self, path: EvPath) -> bool:
        if not path.active or path.plane.backups:
            return False
        return sum(len(plane.active) for plane in self.planes if plane.wanted) <= self.floor

    def _remove(self, path: EvPath, now_ns: int) -> None:
        plane = path.plane
        if path.active:
            plane.active.remove(path)
            path.active = False
            if plane.backups:
                substitute = plane.backups.pop(self._rng.randrange(len(plane.backups)))
                substitute.active = True
                plane.active.append(substitute)
        else:
            plane.backups.remove(path)
        plane.out.append(path)
        self.out_count += 1
        relapse_ns = RELAPSE_PROBES * self._probe_interval_ns
        relapsed = path.returned_ns >= 0 and now_ns - path.returned_ns < relapse_ns
        path.needed = min(path.needed * 2, PROBES_NEEDED_MAX) if relapsed else self._probes_needed
        path.streak, path.answered, path.backoff = 0, True, 1
        path.probe_due_ns = now_ns

    def _restore(self, path: EvPath, cause: EvCause, now_ns: int) -> None:
        plane = path.plane
        plane.out.remove(path)
        self.out_count -= 1
        path.returned_ns = now_ns if cause is not EvCause.LATE_ACK else -1
        if len(plane.active) < plane.quota:
            path.active = True
            plane.active.append(path)
        else:
            plane.backups.append(path)

    # --- probing what is out -----------------------------------------------------------------------------------

    def due_probes(self, now_ns: int, limit: int) -> list[EvPath]:
        """ASSUMED_BAD EVs of wanted planes whose next probe is due; each is taken as probed now.

        An unanswered probe ends the EV's streak and doubles the time to its next one, up to eight intervals.
        """
        due: list[EvPath] = []
        for plane in self.planes:
            if not plane.wanted:
                continue
            for path in plane.out:
                if path.state is BAD and path.probe_due_ns <= now_ns and len(due) < limit:
                    if not path.answered:
                        path.streak = 0
                        path.backoff = min(path.backoff * 2, PROBE_BACKOFF_MAX)
                    path.answered = False
                    path.probe_due_ns = now_ns + path.backoff * self._probe_interval_ns
                    due.append(path)
        return due

    def host_was_late(self, late_ns: int) -> None:
        """This host did not run for `late_ns`: a probe that went unanswered meanwhile has more time."""
        for plane in self.planes:
            for path in plane.out:
                path.probe_due_ns += late_ns

    def next_probe_ns(self) -> int:
        """When `due_probes` next has one; NEVER while nothing is out."""
        times = [path.probe_due_ns for plane in self.planes if plane.wanted for path in plane.out if path.state is BAD]
        return min(times, default=NEVER)

    def probe_answered(self, path: EvPath, marked: bool, now_ns: int) -> None:
        """A probe on this EV came back; after enough in a row the EV is used again."""
        if path.state is not BAD:
            return
        path.answered, path.backoff = True, 1
        path.probe_due_ns = min(path.probe_due_ns, now_ns + self._probe_interval_ns)
        path.streak += 1
        if path.streak >= path.needed:
            self.signal(path, EvCause.PROBED_MARKED if marked else EvCause.PROBED, now_ns)
