"""Lab 8: a NIC that loses ports. The student's class tells peers which ports are up, and believes what peers tell."""

from random import Random
from typing import Any

from course.box.box import BoxError
from course.seams.log import Note, Seat
from endpoint.mrc import PORTS_ALL, REQUEST_IDS, EndpointOperations, Peer, PeerTable
from endpoint.nic import NEVER, EventLog, PortSet

SENT_MAX = 64
"""Updates that one call may send."""
WATCHED = ("send", "wake_ns", "believed")


class TellingOperations(EndpointOperations):
    """The grader's side of one NIC: updates carry the true state of its ports."""

    seat: Seat
    """With a box for each NIC: objects in one process could tell each other without any packet."""

    def __init__(self, peers: PeerTable, ports: PortSet, log: EventLog, rng: Random, on_peer_ports: Any) -> None:
        super().__init__(peers, ports, log, rng, on_peer_ports)
        self.table, self.own, self.settled = peers, ports, on_peer_ports
        self.planes = [port.plane for port in ports]
        self.wake_ns = NEVER
        self.box = self.seat.another()
        self.object, state = self.box.make("Telling", 0, peers.host, self.planes, self.seat.rtt_ns, watch=WATCHED)
        self._take(0, state)

    def named(self) -> dict[str, Peer]:
        """The peers that a queue pair leads to, by name."""
        return {peer.name: peer for peer in self.table if peer.users}

    def up(self) -> list[int]:
        """The planes whose ports are up here."""
        return [port.plane for port in self.own if port.up]

    def _hear(self, now_ns: int, method: str, *arguments: Any) -> Any:
        """Tell the class, do what it says, and return its answer."""
        value, state = self.box.tell([(method, [now_ns, *arguments])], self.object, WATCHED)
        self._take(now_ns, state)
        return value

    def _take(self, now_ns: int, state: dict[str, Any]) -> None:
        wake = state.get("wake_ns")
        if wake is not None and (type(wake) is not int or wake < 0):
            raise BoxError(f"wake_ns must be a time in ns, or None (got {wake!r:.80})")
        self.wake_ns = NEVER if wake is None or wake <= now_ns else wake  # a class must not hold the clock
        self._believe(now_ns, state.get("believed"))
        self._send(now_ns, state.get("send"))

    def _believe(self, now_ns: int, believed: object) -> None:
        if not isinstance(believed, dict):
            raise BoxError(f"believed must be a dictionary of peers and lists of planes (got {believed!r:.80})")
        for name, peer in self.named().items():
            planes = believed.get(name, self.planes)
            if not isinstance(planes, list) or any(type(p) is not int or p not in self.planes for p in planes):
                raise BoxError(f"believed[{name!r}] must be a list of planes of {self.planes} (got {planes!r:.80})")
            mask = sum(port.bit for port in self.own if port.plane in planes)
            before = peer.ports & self.own.all
            if mask != before:
                peer.ports, peer.forgotten = PORTS_ALL if mask == self.own.all else mask, False
                self.seat.log.notes.append(Note(now_ns, "believes", self.table.host, name, tuple(sorted(set(planes)))))
                self.settled(peer, before, now_ns)

    def _send(self, now_ns: int, send: object) -> None:
        if not isinstance(send, list) or len(send) > SENT_MAX:
            raise BoxError(f"send must be a list of at most {SENT_MAX} updates (got {send!r:.80})")
        peers, ports = self.named(), {port.plane: port for port in self.own}
        for update in send:
            name, plane, number = update if isinstance(update, list) and len(update) == 3 else (None, None, None)
            if (
                not isinstance(name, str) or name not in peers
                or type(plane) is not int or plane not in ports
                or type(number) is not int or not 0 <= number < REQUEST_IDS
            ):  # fmt: skip
                raise BoxError(
                    f"an update in send must be (peer, plane, number) with one peer of {sorted(peers)}, a plane of"
                    f" {self.planes}, and a number from 0 to {REQUEST_IDS - 1} (got {update!r:.80})"
                )
            route = peers[name].routes_on(ports[plane].bit).get(ports[plane].number)
            if route is not None and ports[plane].up:
                peers[name].tell(route, number, self.own.up)
            self.seat.log.notes.append(Note(now_ns, "update", self.table.host, name, (plane,)))

    # --- what the transport calls -------------------------------------------------------------------------------

    def announce(self, now_ns: int) -> None:
        self.seat.log.notes.append(Note(now_ns, "ports", self.table.host, "", tuple(self.up())))
        self._hear(now_ns, "on_ports", self.up(), sorted(self.named()))

    def heed(self, peer: Peer, request_id: int, ports: int, now_ns: int) -> bool | None:
        planes = [port.plane for port in self.own if port.bit & ports]
        answer = self._hear(now_ns, "on_update", peer.name, request_id, planes)
        return False if answer is True else None  # the belief has been settled

    def answered(self, peer: Peer, request_id: int, now_ns: int) -> None:
        if peer.users:
            self._hear(now_ns, "on_answer", peer.name, request_id)

    def handle_timer(self, now_ns: int) -> None:
        if self.wake_ns <= now_ns:
            self._hear(now_ns, "on_time")

    def next_timer_ns(self) -> int:
        return self.wake_ns
