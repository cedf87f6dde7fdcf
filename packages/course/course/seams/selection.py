"""Labs 5 and 6: path selection. The student's class hears the fate of packets, and chooses paths or leaves them."""

from collections.abc import Sequence
from random import Random
from typing import Any

from course.box.box import Box, BoxError
from course.seams.log import SeamEvent, Seat
from endpoint.mrc import EvPath, EvSet, Selection, Values


class AskingSelection(Selection):
    """The base of both labs: numbers for paths, a log, and events that wait for the next question."""

    heeds_signals = False
    box: Box
    seat: Seat
    kind = "Spray"
    watch: Sequence[str] = ()

    def __init__(self, evs: EvSet, rng: Random, values: Values) -> None:
        super().__init__(evs, rng, values)
        order = sorted(evs.paths.values(), key=lambda path: (path.plane.number, path.ev))
        self.paths: list[EvPath] = order
        self.number = {path.ev: number for number, path in enumerate(order)}
        self.seat.queue_pairs += 1
        self.qp = self.seat.queue_pairs
        self.waiting: list[tuple[str, list[Any]]] = []
        told = [{"number": at, "plane": path.plane.number, "spine": path.ev & 0xFF} for at, path in enumerate(order)]
        self.object, self.state = self.box.make(self.kind, told, *self.more(), watch=self.watch)

    def more(self) -> tuple[Any, ...]:
        """Arguments of the student's class behind the paths."""
        return ()

    def candidates(self, usable: int) -> list[int]:
        """The paths whose port may send now."""
        return [
            at for at, path in enumerate(self.paths) if path.port.bit & usable and path.plane.wanted and path.active
        ]

    def ask(self, method: str, *arguments: Any) -> Any:
        """Tell what has happened since, then ask."""
        events, self.waiting = [*self.waiting, (method, list(arguments))], []
        value, self.state = self.box.tell(events, self.object, self.watch)
        return value

    def note(self, now_ns: int, kind: str, path: EvPath, marked: bool = False) -> int:
        """Log an event; the path's number."""
        number = self.number[path.ev]
        self.seat.log.events.append(SeamEvent(now_ns, kind, number, path.plane.number, self.qp, marked))
        return number


class SpraySelection(AskingSelection):
    """Lab 5: the student chooses the path of every packet."""

    def next(self, usable: int) -> EvPath | None:
        candidates = self.candidates(usable)
        if not candidates:
            return None
        chosen = self.ask("choose", candidates)
        if chosen is None:
            return None
        if type(chosen) is not int or chosen not in candidates:
            raise BoxError(
                f"choose must return one of the paths that may send now, {candidates}, or None to wait (got {chosen!r})"
            )
        return self.paths[chosen]

    def on_packet_sent(self, now_ns: int, path: EvPath, size: int) -> None:
        self.waiting.append(("?on_sent", [self.note(now_ns, "sent", path)]))

    def on_packet_acked(self, now_ns: int, path: EvPath, size: int, rtt_ns: int | None, marked: bool) -> None:
        if size:  # else it had counted as lost, or was acknowledged before: that sending has had its end
            self._acked(now_ns, path, marked)

    def on_packet_withdrawn(self, now_ns: int, path: EvPath, size: int) -> None:
        self._acked(now_ns, path, False)  # the original has arrived, or the peer has refused the packet: it was there

    def _acked(self, now_ns: int, path: EvPath, marked: bool) -> None:
        self.waiting.append(("?on_acked", [self.note(now_ns, "acked", path, marked), marked]))

    def on_packet_trimmed(self, now_ns: int, path: EvPath, size: int, last_hop: bool) -> None:
        self.waiting.append(("?on_trimmed", [self.note(now_ns, "trimmed", path)]))

    def on_packet_lost(self, now_ns: int, path: EvPath, size: int, proved: bool) -> None:
        self.waiting.append(("?on_lost", [self.note(now_ns, "lost", path)]))


class HealthSelection(AskingSelection):
    """Lab 6: the student says which paths are out, and which of them to probe; the packets take turns on the rest."""

    kind = "Health"
    watch = ("out", "probes")

    def more(self) -> tuple[Any, ...]:
        return (self.seat.rtt_ns,)

    def __init__(self, evs: EvSet, rng: Random, values: Values) -> None:
        super().__init__(evs, rng, values)
        self.flying = [0] * len(self.paths)
        self.turn = [0] * len(self.paths)
        self.clock = 0
        self.withdrawn_ns = -1
        self.known_out: frozenset[int] = frozenset()
        self._look(0)

    def _look(self, now_ns: int) -> None:
        """Read the student's decisions: log what has changed, and send the probes."""
        out, probes = self.state.get("out"), self.state.get("probes")
        for name, value in (("out", out), ("probes", probes)):
            if not isinstance(value, list) or any(
                type(number) is not int or not 0 <= number < len(self.paths) for number in value
            ):
                raise BoxError(
                    f"{name} must be a set or list of path numbers, 0 to {len(self.paths) - 1} (got {value!r})"
                )
        now_out = frozenset(out or ())
        for number in sorted(now_out ^ self.known_out):
            kind = "leave" if number in now_out else "back"
            self.seat.log.events.append(SeamEvent(now_ns, kind, number, self.paths[number].plane.number, self.qp))
        self.known_out = now_out
        for number in sorted(set(probes or ())):
            self.note(now_ns, "probe", self.paths[number])
            self.wanted_probes.append(self.paths[number])

    def hear(self, now_ns: int, method: str, *arguments: Any) -> None:
        """An event at once: the answer may be a probe."""
        self.clock = max(self.clock, now_ns)
        self.ask(method, now_ns, *arguments)
        self._look(now_ns)

    def next(self, usable: int) -> EvPath | None:
        candidates = self.candidates(usable)
        if not candidates:
            return None
        sound = [number for number in candidates if number not in self.known_out]
        if not sound:
            whole = [at for at, path in enumerate(self.paths) if path.active and path.plane.wanted]
            if any(number not in self.known_out for number in whole):
                return None  # another port will do
            sound = candidates  # everything is out: something has to be tried
        best = min(sound, key=lambda number: (self.flying[number], self.turn[number]))
        return self.paths[best]

    def on_packet_sent(self, now_ns: int, path: EvPath, size: int) -> None:
        number = self.note(now_ns, "sent", path)
        self.flying[number] += 1
        self.turn[number] += 1
        if self.known_out:
            self.hear(now_ns, "?on_time")

    def _landed(self, number: int) -> None:
        self.flying[number] = max(0, self.flying[number] - 1)

    def on_packet_acked(self, now_ns: int, path: EvPath, size: int, rtt_ns: int | None, marked: bool) -> None:
        if size or self._arrived_late(now_ns, rtt_ns, marked):
            number = self.note(now_ns, "acked", path, marked)
            if size:
                self._landed(number)
            self.hear(now_ns, "on_acked", number)

    def _arrived_late(self, now_ns: int, rtt_ns: int | None, marked: bool) -> bool:
        """Whether a packet without a size has arrived for the first time: it had counted as lost, and flies no more.

        A marked one may also be a copy of what had arrived before. It is none if it has not been sent again, which a
        round trip shows, or if its copy has just been withdrawn.
        """
        withdrawn, self.withdrawn_ns = self.withdrawn_ns == now_ns, -1  # for one arrival only
        return not marked or rtt_ns is not None or withdrawn

    def on_packet_withdrawn(self, now_ns: int, path: EvPath, size: int) -> None:
        self.withdrawn_ns = now_ns
        self._landed(self.number[path.ev])

    def on_packet_trimmed(self, now_ns: int, path: EvPath, size: int, last_hop: bool) -> None:
        number = self.note(now_ns, "trimmed", path)
        self._landed(number)
        self.hear(now_ns, "?on_trimmed", number)

    def on_packet_lost(self, now_ns: int, path: EvPath, size: int, proved: bool) -> None:
        number = self.note(now_ns, "lost", path)
        self._landed(number)
        self.hear(now_ns, "on_lost", number)

    def on_probe_answered(self, now_ns: int, path: EvPath, rtt_ns: int, marked: bool) -> None:
        self.hear(now_ns, "on_probe_answered", self.number[path.ev])
