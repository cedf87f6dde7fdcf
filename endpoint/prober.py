"""The path prober, the paper's Clustermapper: small packets along every link near this host and back to it.

On two tiers these are the links of its leaves; on three tiers also those between their spines and cores. All hosts
together probe every cable.

Each probe is a uSID list that visits a switch and returns to the port that sent it (the profile's `self_probes`), so
nobody answers and no clock but ours counts. Probes travel in the control class: they show losses of links, not of
queues. A probe leaves every `interval_ns`, to each target in turn, with any number of targets.
"""

import struct
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from endpoint import blame, frame_filter
from endpoint.blame import LinkState, Probed
from endpoint.denylist import PROBER, Denylist
from endpoint.profile import NicProfile, ProfilePort, SelfProbe
from endpoint.transport import Event

UDP_PORT = 4793
FRAMES = frame_filter.udp_over_ipv6((UDP_PORT,), frame_filter.ACCEPT_WHOLE, frame_filter.REJECT)
"""The packet filter for probes: `common.linux.bpf.run(FRAMES, frame)` tells one in a world without a kernel."""
DRIFT = 0.05  # of the share of losses, after which a lossy link is told again
_MAGIC = 0x6D726370  # "mrcp"
_PAYLOAD = struct.Struct("!IIHHI")  # magic, host, target, zero, sequence
_INNER_PAYLOAD = 102


class ProberError(ValueError):
    """The prober cannot run as asked."""


class _Target:
    """One switch through one port: the last `window` probes, oldest first, and those still under way."""

    def __init__(self, probe: SelfProbe, is_leaf: bool, frame: bytes, window: int) -> None:
        self.probe = probe
        self.is_leaf = is_leaf
        self.frame = frame
        self.sequence = 0
        self.outcomes: deque[bool] = deque(maxlen=window)
        self.lost_run = 0
        self.waiting: dict[int, int] = {}  # sequence -> time sent

    def settle(self, arrived: bool) -> None:
        self.outcomes.append(arrived)
        self.lost_run = 0 if arrived else self.lost_run + 1

    def probed(self) -> Probed:
        lost = sum(not arrived for arrived in self.outcomes)
        probe = self.probe
        return Probed(
            probe.target, probe.port, self.is_leaf, len(self.outcomes), lost, self.lost_run, behind=probe.behind
        )


class PathProber:
    """Frames and time are arguments, as for a transport; findings come out as `link` events."""

    INTERVAL_NS = 20_000_000
    WINDOW = 50
    WINDOW_MAX = 100_000
    TARGETS_MAX = 1 << 16
    INTERVAL_MIN_NS = 100_000  # or a quarter of a round trip where that is shorter

    def __init__(
        self, profile: NicProfile, *, interval_ns: int, window: int, denylist: Denylist | None, now_ns: int
    ) -> None:
        if not profile.self_probes:
            raise ProberError(
                f"{profile.host} has no self_probes in its profile; a fabric without SRv6 cannot be probed"
            )
        least_ns = min(self.INTERVAL_MIN_NS, profile.base_rtt_ns // 4)
        if interval_ns < least_ns:
            raise ProberError(
                f"interval_ns is {interval_ns}; it must be at least {least_ns}, or probing costs too much"
            )
        if not blame.PROBES_MIN <= window <= self.WINDOW_MAX:
            raise ProberError(f"window is {window}; it must be from {blame.PROBES_MIN} to {self.WINDOW_MAX} probes")
        if len(profile.self_probes) > self.TARGETS_MAX:
            raise ProberError(
                f"{profile.host} has {len(profile.self_probes):,} self_probes; it must have at most"
                f" {self.TARGETS_MAX:,}"
            )
        self._profile = profile
        self._interval_ns = interval_ns
        # Late is not lost: a host that is scheduled late must not accuse a link.
        self._timeout_ns = 3 * profile.base_rtt_ns + 10 * profile.jitter_ns + min(1_000_000, profile.base_rtt_ns)
        self._denylist = denylist
        ports = {port.port: port for port in profile.ports}
        self._leaf_of = {probe.port: probe.target for probe in reversed(profile.self_probes)}  # the first of each port
        self._targets = [
            _Target(
                probe,
                probe.target == self._leaf_of[probe.port],
                _frame(profile, ports[probe.port], probe, index),
                window,
            )
            for index, probe in enumerate(profile.self_probes)
        ]
        self._ports_up = {port.port: True for port in profile.ports}
        self._turn = 0
        self._next_ns = now_ns
        self._states: dict[tuple[str, str], LinkState] = {}
        self._events: list[Event] = []
        self._outgoing: list[tuple[int, bytes]] = []

    def next_timer_ns(self) -> int:
        return self._next_ns

    def handle_timer(self, now_ns: int) -> None:
        """Count overdue probes as lost, and make the next probe."""
        if now_ns < self._next_ns:
            return
        self._next_ns = max(self._next_ns + self._interval_ns, now_ns)
        target = self._targets[self._turn]
        self._turn = (self._turn + 1) % len(self._targets)
        overdue = [sequence for sequence, sent_ns in target.waiting.items() if now_ns - sent_ns > self._timeout_ns]
        for sequence in overdue:
            del target.waiting[sequence]
            target.settle(False)
        if self._ports_up[target.probe.port]:
            target.waiting[target.sequence] = now_ns
            self._outgoing.append((target.probe.port, target.frame + struct.pack("!I", target.sequence)))
            target.sequence = (target.sequence + 1) & 0xFFFFFFFF
        if self._turn == 0:
            self._judge(now_ns)

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        """This host did not run for `late_ns`, until now: probes under way count as sent so much later."""
        for target in self._targets:
            target.waiting = {number: min(sent + late_ns, now_ns) for number, sent in target.waiting.items()}

    def packets_to_send(self, now_ns: int) -> list[tuple[int, bytes]]:
        frames, self._outgoing = self._outgoing, []
        return frames

    def receive(self, port: int, frames: Sequence[bytes], now_ns: int) -> None:
        """Our own probes come back; anything else is ignored."""
        for frame in frames:
            if len(frame) < _INNER_PAYLOAD + _PAYLOAD.size:
                continue
            magic, host, index, _zero, sequence = _PAYLOAD.unpack_from(frame, _INNER_PAYLOAD)
            if magic != _MAGIC or host != self._profile.index or index >= len(self._targets):
                continue
            target = self._targets[index]
            if port == target.probe.port and target.waiting.pop(sequence, None) is not None:
                target.settle(True)

    def port_changed(self, port: int, up: bool) -> None:
        """Forget the probes of a port that was down: the port lost them, not a link."""
        if port not in self._ports_up:
            return
        self._ports_up[port] = up
        for target in self._targets:
            if target.probe.port == port:
                target.outcomes.clear()
                target.waiting.clear()
                target.lost_run = 0

    def events(self) -> list[Event]:
        """`link` events since the last call: links whose state or share of losses differs from the last event's."""
        events, self._events = self._events, []
        return events

    def link_map(self) -> list[dict[str, Any]]:
        """Every link near this host: a, b, state, loss, blame."""
        return [asdict(link) for link in self._infer()]

    def _infer(self) -> list[LinkState]:
        return blame.infer(self._profile.host, self._ports_up, [target.probed() for target in self._targets])

    def _judge(self, now_ns: int) -> None:
        changed = False
        for link in self._infer():
            before = self._states.get((link.a, link.b))
            new_state = before is None or before.state != link.state
            # A link is first named while most of the window is from before it went bad.
            drifted = before is not None and link.state == blame.LOSSY and abs(link.loss - before.loss) >= DRIFT
            if new_state or drifted:
                changed = changed or new_state
                self._states[link.a, link.b] = link
                self._events.append(Event(now_ns, "link", asdict(link)))
        if changed and self._denylist is not None:
            self._deny(self._denylist, now_ns)

    def _deny(self, denylist: Denylist, now_ns: int) -> None:
        """Deny the EVs over links that are bad although up, unless that would leave a destination without any."""
        host = self._profile.host
        bad = {ends for ends, link in self._states.items() if link.state in (blame.LOSSY, blame.DOWN)}
        others = denylist.without(PROBER)
        denials: set[tuple[str, int]] = set()
        for destination in self._profile.destinations.values():
            mine = {
                (destination.host, path.ev)
                for path in destination.paths
                if path.port in self._leaf_of and not bad.isdisjoint(_links(host, self._leaf_of[path.port], path.via))
            }
            every = {(destination.host, path.ev) for path in destination.paths}
            if every - mine - others:
                denials |= mine
        denylist.set(PROBER, denials, now_ns)


def _links(host: str, leaf: str, via: str | None) -> list[tuple[str, str]]:
    """The first links of a path: `via` has the switches that its EV chose, with "+" between."""
    return list(pairwise((host, leaf, *(via.split("+") if via else ()))))


def _frame(profile: NicProfile, port: ProfilePort, probe: SelfProbe, index: int) -> bytes:
    """The probe up to its sequence number. UDP goes without a checksum, as in a tunnel (RFC 6935)."""
    payload_bytes = _PAYLOAD.size
    traffic_class = profile.dscp.control << 2
    version = (6 << 28 | traffic_class << 20 | index & 0xFFFFF).to_bytes(4, "big")
    ethernet = port.gateway_mac + port.mac + b"\x86\xdd"
    outer = version + struct.pack("!HBB", 48 + payload_bytes, 41, 64) + port.address.packed + probe.da.packed
    inner = version + struct.pack("!HBB", 8 + payload_bytes, 17, 64) + profile.address.packed + (profile.address.packed)
    udp = struct.pack("!HHHH", 0xC000 | index & 0x3FFF, UDP_PORT, 8 + payload_bytes, 0)
    head = _PAYLOAD.pack(_MAGIC, profile.index, index, 0, 0)[:-4]
    return ethernet + outer + inner + udp + head
