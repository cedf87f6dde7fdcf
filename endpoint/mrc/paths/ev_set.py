"""The EVs of one QP: which are in rotation, which wait as backups, which are out, plane by plane (paper §2.1, §2.4).

A random subset of each plane's paths is active, the same number in every plane; what is left serves as backups. An EV
that goes out is replaced by a backup on the same plane, so that planes stay equally loaded; where there is no backup
the plane carries its share on what is left. An EV that comes back fills its plane up again or becomes a backup.

A silent loss takes an EV out at once while its plane has more EVs than its floor, for there losing a sound EV costs
nothing. At the floor the plane would lose its share, so there what else became of the EV's packets decides. Each EV
carries a suspicion: a loss adds a point, two if nothing sent on the EV since has been acknowledged, and each
acknowledged packet takes a quarter of a point off. Four points take the EV out all the same. So a path that loses one
packet in fifty stays, a path that loses more than one in five goes within some packets, and a dead path with its second
loss. A plane carries the same suspicion for all its EVs together, and sixteen points take the whole plane out: with
many EVs each of them would have to lose a packet first. Where planes are not suspected, losses of a plane's last EV
raise no suspicion while others of its packets arrive: only a policy leaves such a plane. The last EV of all stays,
however much it loses, until probes bring another EV back; while the last EV is suspect, relapses of the others do not
count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Final

from endpoint.mrc.paths.ev_state import SENDABLE, EvCause, EvState, transition
from endpoint.mrc.paths.shuffling import shuffle
from endpoint.nic.config import NEVER
from endpoint.nic.packet import Route
from endpoint.nic.port import Port

PROBES_NEEDED_MAX: Final = 16
PROBE_BACKOFF_MAX: Final = 8
RELAPSE_PROBES: Final = 32
"""An EV lost again within this many probe intervals of its return has relapsed."""

SUSPECT_LOSS: Final = 4
"""Quarters of a point that a loss adds to an EV's suspicion."""
SUSPECT_SILENT_LOSS: Final = 8
"""The same if nothing sent on the EV after the lost packet has been acknowledged."""
PLANE_SUSPECT_MAX: Final = 64
"""At this suspicion of a plane all its EVs go."""
SUSPECT_RETURNED: Final = 8
"""The suspicion of an EV that probes have brought back."""
SUSPECT_MAX: Final = 16
"""At this suspicion an EV goes, even if its plane is at its floor."""

GOOD: Final = EvState.GOOD
SKIP: Final = EvState.SKIP
BAD: Final = EvState.ASSUMED_BAD
DENIED: Final = EvState.DENIED
CONGESTED: Final = (EvCause.ECN, EvCause.TRIM)


class EvPath:
    """An EV and the path that the EV takes, as one QP sees them."""

    def __init__(self, route: Route, plane: PlaneEvs, needed: int) -> None:
        self.route = route
        self.ev = route.ev
        self.plane = plane
        self.state = GOOD
        self.active = False
        self.sent = 0
        self.alive_ns = -1
        """When the latest packet that was sent on this EV, and is acknowledged, was sent, by the flight's clock."""
        self.passed_psn = -1
        """The latest acknowledged one of the packets sent once on this EV: earlier ones cannot arrive any more."""
        self.suspicion = 0
        """In quarters of a point; acknowledged packets take one off each."""
        self.left_ns = -1
        """When it last went out: the answer to a probe from before proves nothing."""
        self.proved_ns = -1
        """When the latest probe that was answered while the EV was out was sent, by the flight's clock."""
        self.needed = needed
        """Probes in a row that bring it back."""
        self.streak = 0
        self.answered = True
        self.backoff = 1
        self.probe_due_ns = 0
        self.returned_ns = -1
        self.link_down = False
        """Whether a switch has said so of a link of this path, since when no probe has brought the EV back."""
        self.rested_until = 0
        """The last packet of its plane, counted by `PlaneEvs.taken`, that a SKIP EV sits out."""

    @property
    def port(self) -> Port:
        """The port that its packets leave by."""
        return self.route.port


class PlaneEvs:
    """The EVs of one QP in one plane."""

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
        self.floor = 1
        """With no more EVs than this in rotation, a loss must be more than chance to take another out."""
        self.suspicion = 0
        """As of an EV, but of all of the plane's packets."""
        self.wanted = True
        """Whether the port is up and the peer has not said that its own is down."""
        self.taken = 0
        """Packets of this plane, and the next one is on its way."""
        self._bits = rng.getrandbits
        self._at = 0

    def take(self) -> EvPath | None:
        """The next EV of the rotation, in a fresh pseudo-random order each scan.

        A resting EV whose rest is over is made GOOD again and passed over, at most one a packet (guidance of OCP MRC
        11.2.2). Where all others rest as well, that EV is used, or else the first that rests.
        """
        self.taken += 1
        active = self.active
        count = len(active)
        at = self._at
        if at < count and active[at].state is GOOD:  # as nearly always
            self._at = at + 1
            return active[at]
        restored: EvPath | None = None
        resting: EvPath | None = None
        for _ in range(max(count - at, 0) + count):  # what is left of this scan, and all of the next
            if at >= count:
                shuffle(active, self._bits)
                at = 0
            path = active[at]
            at += 1
            if path.state is GOOD:
                if path is not restored:
                    self._at = at
                    return path
            elif restored is None and self.taken > path.rested_until:
                path.state = transition(path.state, EvCause.TURN)
                restored = path
            elif resting is None:
                resting = path
        self._at = at
        return resting if restored is None else restored


@dataclass(frozen=True, slots=True)
class EvRules:
    """How many EVs are in rotation and how many back them up, over all planes; and what the settings say of them.

    `leaves_plane`: a packet that was lost goes by another plane when it is sent again.
    """

    active: int
    backup: int
    floor_share: float
    probes_needed: int
    probe_interval_ns: int
    rest_packets: int = 0
    swaps_congested: bool = False
    suspects_planes: bool = True
    leaves_plane: bool = True


class EvSet:
    """All planes. `on_change(path, old, cause)` is called after each transition to or from ASSUMED_BAD and DENIED."""

    def __init__(
        self,
        routes: Iterable[Route],
        rng: Random,
        rules: EvRules,
        on_change: Callable[[EvPath, EvState, EvCause], None],
    ) -> None:
        self._rng = rng
        self._on_change = on_change
        self._rest_packets = rules.rest_packets
        self._swaps_congested = rules.swaps_congested
        self._suspects_planes = rules.suspects_planes
        self.leaves_plane = rules.leaves_plane
        self._probes_needed = rules.probes_needed
        self._probe_interval_ns = rules.probe_interval_ns
        self.paths: dict[int, EvPath] = {}
        by_port: dict[int, list[Route]] = {}
        for route in routes:
            by_port.setdefault(route.port.number, []).append(route)
        self.planes: list[PlaneEvs] = []
        share, spare = max(1, rules.active // len(by_port)), rules.backup // len(by_port)
        equal = min(share, *(len(rows) for rows in by_port.values())) if len(by_port) > 1 else share
        for number in sorted(by_port):
            rows = by_port[number]
            plane = PlaneEvs(rows[0].port, rng)
            chosen = rng.sample(rows, min(len(rows), equal + spare))
            paths = [EvPath(route, plane, rules.probes_needed) for route in chosen]
            plane.active, plane.backups = paths[:equal], paths[equal:]
            plane.quota = len(plane.active)
            plane.floor = max(1, int(plane.quota * rules.floor_share))
            for path in plane.active:
                path.active = True
            self.planes.append(plane)
            self.paths.update((path.ev, path) for path in paths)
        self.out_count = 0
        self.live: list[PlaneEvs] = []
        """Planes to spread over: wanted, and with an EV in rotation."""
        self.version = 0
        """Changes whenever `live` does, so that a selection can notice."""
        self.refresh()

    def refresh(self) -> None:
        """Find the live planes anew."""
        live = [plane for plane in self.planes if plane.wanted and plane.active]
        if live != self.live:
            self.live = live
            self.version += 1

    @property
    def wanted_ports(self) -> int:
        """The ports that are up at both ends, as bits."""
        return sum(plane.bit for plane in self.planes if plane.wanted)

    def set_wanted(self, ports: int) -> None:
        """Use only planes whose port's bit is in `ports`."""
        for plane in self.planes:
            plane.wanted = bool(plane.bit & ports)
        self.refresh()

    def lose(self, path: EvPath, sent_ns: int, now_ns: int, *, proved: bool) -> None:
        """A packet sent on this EV at `sent_ns`, by the flight's clock, vanished: take the EV out, unless its plane is
        at its floor and chance explains the loss. `proved`: something sent later has arrived, so the peer is there.

        What was lost before an answered probe was sent tells of the outage that the probe has seen the end of.
        """
        if sent_ns < path.proved_ns:
            return
        plane = path.plane
        if proved:
            if path.alive_ns < sent_ns:
                path.suspicion += SUSPECT_SILENT_LOSS
            elif self._suspects_planes or plane.active != [path]:
                path.suspicion += SUSPECT_LOSS
            alive_ns = max(other.alive_ns for other in self.paths.values() if other.plane is plane)
            plane.suspicion += SUSPECT_LOSS if alive_ns >= sent_ns else SUSPECT_SILENT_LOSS
            gone = self._suspects_planes and plane.suspicion >= PLANE_SUSPECT_MAX
            if gone and path.active and not self._last(plane):
                plane.suspicion = 0
                for other in [*plane.backups, *plane.active]:
                    self.signal(other, EvCause.LOSS, now_ns)
                return
        tolerated = path.state in SENDABLE and self._tolerated(path)
        self.signal(path, EvCause.LOSS_AT_FLOOR if tolerated else EvCause.LOSS, now_ns)

    def leave(self, path: EvPath, now_ns: int) -> None:
        """A link of this path is known to be down: take the EV out, unless it is the last of all."""
        path.link_down = True
        last = path.active and path.plane.active == [path] and not path.plane.backups and self._last(path.plane)
        self.signal(path, EvCause.LOSS_AT_FLOOR if last else EvCause.LOSS, now_ns)

    def _tolerated(self, path: EvPath) -> bool:
        plane = path.plane
        if not path.active or plane.backups or len(plane.active) > plane.floor:
            return False
        return path.suspicion < SUSPECT_MAX or (len(plane.active) == 1 and self._last(plane))

    def _last(self, plane: PlaneEvs) -> bool:
        """Whether no other plane is live."""
        return all(other is plane for other in self.live)

    def _only_a_suspect_is_left(self) -> bool:
        """Whether the last EV of all would go if another were there to take its place."""
        left = [path for plane in self.live for path in plane.active]
        return len(left) == 1 and left[0].suspicion >= SUSPECT_MAX

    def signal(self, path: EvPath, cause: EvCause, now_ns: int) -> None:
        """Apply a cause to an EV by the table, then move EVs between rotation, backups and the bench."""
        if self._swaps_congested and cause in CONGESTED and path.active and path.plane.backups:
            self._swap(path)
            return
        old = path.state
        new = transition(old, cause)
        if cause is EvCause.LATE_ACK:
            path.suspicion = 0
        if new is SKIP and (old is not SKIP or cause is EvCause.ECN or cause is EvCause.TRIM):
            path.rested_until = path.plane.taken + self._rest_packets
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

    def _swap(self, path: EvPath) -> None:
        """Exchange an EV in rotation for a backup of its plane; it is sound, so it waits as a backup from now on."""
        plane = path.plane
        at = self._rng.randrange(len(plane.backups))
        substitute = plane.backups[at]
        plane.backups[at] = path
        plane.active[plane.active.index(path)] = substitute
        path.active, substitute.active = False, True

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
        path.left_ns = path.probe_due_ns = now_ns

    def _restore(self, path: EvPath, cause: EvCause, now_ns: int) -> None:
        plane = path.plane
        plane.out.remove(path)
        path.link_down = False
        self.out_count -= 1
        path.returned_ns = now_ns if cause is not EvCause.LATE_ACK else -1
        path.suspicion = SUSPECT_RETURNED if cause in (EvCause.PROBED, EvCause.PROBED_MARKED) else 0
        if len(plane.active) < plane.quota:
            path.active = True
            plane.active.append(path)
        else:
            plane.backups.append(path)

    # --- probing what is out -----------------------------------------------------------------------------------

    def due_probes(self, now_ns: int, limit: int, answer_ns: int = 0) -> list[EvPath]:
        """Up to `limit` ASSUMED_BAD EVs of wanted planes whose next probe is due; each is taken as probed now.

        If more are due, those that have been due longest: a dead plane must not keep a healed one from its probes. An
        unanswered probe ends the EV's streak and doubles the time to its next one, up to eight intervals. An answer may
        take `answer_ns` where that is more than an interval: queues are full.
        """
        due: list[EvPath] = []
        interval_ns = max(self._probe_interval_ns, answer_ns)
        for plane in self.planes:
            if plane.wanted:
                due += [path for path in plane.out if path.state is BAD and path.probe_due_ns <= now_ns]
        if len(due) > limit:
            due = sorted(due, key=lambda path: path.probe_due_ns)[:limit]
        for path in due:
            if not path.answered:
                path.streak = 0
                path.backoff = min(path.backoff * 2, PROBE_BACKOFF_MAX)
            path.answered = False
            path.probe_due_ns = now_ns + path.backoff * interval_ns
        return due

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        """This host did not run for `late_ns`, until now: a probe that went unanswered meanwhile has more time."""
        for plane in self.planes:
            for path in plane.out:
                path.probe_due_ns += late_ns
                path.left_ns = min(path.left_ns + late_ns, now_ns)

    def probe_soon(self, now_ns: int) -> int:
        """Nothing sent on the EVs in rotation is answered: those that are out may be better by now. When to probe."""
        for plane in self.planes:
            for path in plane.out:
                path.backoff, path.probe_due_ns = 1, min(path.probe_due_ns, now_ns)
        return self.next_probe_ns()

    def next_probe_ns(self) -> int:
        """When `due_probes` next has one; NEVER while nothing is out."""
        times = [path.probe_due_ns for plane in self.planes if plane.wanted for path in plane.out if path.state is BAD]
        return min(times, default=NEVER)

    def probe_answered(self, path: EvPath, sent_ns: int, marked: bool, now_ns: int) -> None:
        """A probe sent on this EV at `sent_ns`, by the flight's clock, came back; after enough in a row the EV is used
        again."""
        if path.state is not BAD:
            return
        path.proved_ns = max(path.proved_ns, sent_ns)
        path.answered, path.backoff = True, 1
        path.probe_due_ns = min(path.probe_due_ns, now_ns + self._probe_interval_ns)
        path.streak += 1
        if path.streak >= (self._probes_needed if self._only_a_suspect_is_left() else path.needed):
            self.signal(path, EvCause.PROBED_MARKED if marked else EvCause.PROBED, now_ns)
