"""A small fabric in virtual time: what the transport is tested over. No threads, no clock, one seed.

Host A's port p leads to plane p; there a packet crosses the link of its path (`via`, found from the EV), and then the
last hop towards its destination. Each link has a rate, a delay, a data queue with ECN and trimming, and faults. Control
and trimmed packets do not wait behind data.
"""

import heapq
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any
from zlib import crc32

from benchmarks.rig.profiles import DSCP, profile as profile_data
from endpoint import profile as profiles
from endpoint.mrc.endpoint import Endpoint
from endpoint.nic import frame as frames
from endpoint.nic.dialect import DEFAULT
from endpoint.roce.endpoint import RoceEndpoint


@dataclass
class Faults:
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    """Share of packets that take up to `reorder_ns` longer."""
    reorder_ns: int = 0
    corrupt: float = 0.0


@dataclass
class Link:
    """`trim_bytes` 0: tail drop at `depth_bytes`. `mark_bytes` 0: no ECN."""

    rate_bps: int
    delay_ns: int
    depth_bytes: int
    trim_bytes: int = 0
    mark_bytes: int = 0
    lasthop: bool = False
    up: bool = True
    faults: Faults = field(default_factory=Faults)
    stalled_until_ns: int = 0
    data_free_ns: int = 0
    control_free_ns: int = 0
    trimmed: int = 0
    marked: int = 0
    dropped: int = 0
    data_bytes: int = 0
    data_packets: int = 0


class Wire:
    """Hosts `h0`… joined by planes. `base_rtt_ns` of the profiles is computed from the links.

    `host_settings` are settings of single hosts beside those of all.
    """

    def __init__(
        self,
        *,
        hosts: int = 2,
        planes: int = 4,
        evs_per_plane: int = 8,
        rate_bps: int = 10_000_000_000,
        delay_ns: int = 1_000,
        plane_delays_ns: tuple[int, ...] = (),
        seed: int = 1,
        trim: bool = True,
        mark: bool = True,
        make: Callable[..., Any] = Endpoint,
        jitter_ns: int = 0,
        profile_changes: dict[str, Any] | None = None,
        ev_first: int = 0,
        host_settings: dict[str, dict[str, Any]] | None = None,
        **settings: Any,
    ) -> None:
        self.now_ns = 0
        self.rng = Random(seed)
        self.journal: list[str] = []
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        frame_ns = 4300 * 8_000_000_000 // rate_bps
        self.base_rtt_ns = 2 * (frame_ns + delay_ns) + frame_ns + 2 * delay_ns + 2 * 200 * 8_000_000_000 // rate_bps
        bdp = rate_bps * self.base_rtt_ns // 8_000_000_000
        self.profiles: dict[str, profiles.NicProfile] = {}
        self.transports: dict[str, Any] = {}  # tests look into them
        self._path_of: dict[tuple[str, bytes, int], tuple[str, str]] = {}
        self._host_of: dict[bytes, str] = {}
        self.links: dict[tuple[Any, ...], Link] = {}
        self.host_up: dict[tuple[str, int], bool] = {}
        self.heard: dict[str, deque[tuple[int, bytes]]] = {}
        """The last frames that arrived at each host, for a test to send again."""
        self._asleep_until: dict[str, int] = {}
        self._wake_ns: dict[str, int] = {}
        self._inbox: dict[str, list[tuple[int, bytes]]] = {}
        for number in range(hosts):
            data = profile_data(number, hosts, planes, evs_per_plane, rate_bps, ev_first)
            data.update(base_rtt_ns=self.base_rtt_ns, jitter_ns=jitter_ns)
            data.update(profile_changes or {})
            nic = profiles.parse(json.loads(json.dumps(data)))
            self.profiles[nic.host] = nic
            self._host_of[nic.address.packed] = nic.host
            own = settings | (host_settings or {}).get(nic.host, {})
            self.transports[nic.host] = make(nic, rng=Random(seed * 1000 + number), now_ns=0, **own)
            self.heard[nic.host] = deque(maxlen=300)
            self._asleep_until[nic.host] = 0
            self._inbox[nic.host] = []
            for plane in range(planes):
                wait_ns = plane_delays_ns[plane] if plane_delays_ns else delay_ns
                self.host_up[nic.host, plane + 1] = True
                self.links[nic.host, plane] = Link(
                    rate_bps, delay_ns, 8 * bdp + 100_000, int(1.5 * bdp) + 20_000 if trim else 0, 0, lasthop=True
                )
                for via in range(evs_per_plane):
                    trim_bytes, mark_bytes = bdp + 20_000 if trim else 0, bdp // 4 + 10_000 if mark else 0
                    link = Link(rate_bps, wait_ns, 8 * bdp + 100_000, trim_bytes, mark_bytes)
                    self.links.setdefault((plane, f"p{plane}s{via}"), link)
        for nic in self.profiles.values():
            for name, row in nic.destinations.items():
                for path in row.paths:
                    self._path_of[nic.host, row.address.packed, path.ev] = (path.via or "local", name)

    # --- time ----------------------------------------------------------------------------------------------------

    def at(self, t_ns: int, action: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._queue, (max(t_ns, self.now_ns), self._sequence, action))

    def run(self, until_ns: int, stop: Callable[[], bool] | None = None, events: int = 5_000_000) -> None:
        """Run to a time, or until `stop()` holds after an event."""
        for host in self.transports:
            self._pump(host)
        while self._queue and self._queue[0][0] <= until_ns:
            if stop is not None and stop():
                return
            events -= 1
            assert events > 0, "too many events: something spins"
            t_ns, _, action = heapq.heappop(self._queue)
            self.now_ns = t_ns
            action()
        self.now_ns = max(self.now_ns, until_ns)

    def sleep(self, host: str, until_ns: int, *, told: bool = False) -> None:
        """The host's process is descheduled: frames wait, timers are late. The host is told on waking, or not."""
        self._asleep_until[host] = until_ns
        late_ns = until_ns - self.now_ns if told else 0
        self.at(until_ns, lambda: self._awake(host, late_ns))

    def stall(self, for_ns: int, *, told: bool = True) -> None:
        """The whole machine stands still: hosts, links and all that is under way. Hosts are told, or not."""
        self._queue = [(t_ns + for_ns, sequence, action) for t_ns, sequence, action in self._queue]
        for link in self.links.values():
            link.data_free_ns += for_ns
            link.control_free_ns += for_ns
            link.stalled_until_ns += for_ns
        self._wake_ns = {host: due_ns + for_ns for host, due_ns in self._wake_ns.items()}
        self.now_ns += for_ns
        for host, transport in self.transports.items():
            if told:
                transport.host_was_late(for_ns, self.now_ns)
            self._timer(host)

    # --- hosts ---------------------------------------------------------------------------------------------------

    def _awake(self, host: str, late_ns: int) -> None:
        if late_ns:
            self.transports[host].host_was_late(late_ns, self.now_ns)
        inbox, self._inbox[host] = self._inbox[host], []
        for port, frame in inbox:
            self.transports[host].receive(port, [frame], self.now_ns)
        self._timer(host)

    def _timer(self, host: str) -> None:
        if self._wake_ns.get(host) == self.now_ns:
            del self._wake_ns[host]
        if self._asleep_until[host] > self.now_ns:
            return
        transport = self.transports[host]
        due_ns = transport.next_timer_ns()
        if due_ns is not None and due_ns <= self.now_ns:
            transport.handle_timer(self.now_ns)
        self._pump(host)

    def _pump(self, host: str) -> None:
        if self._asleep_until[host] > self.now_ns:
            return
        transport = self.transports[host]
        while True:
            out = transport.packets_to_send(self.now_ns, 64)
            for port, frame in out:
                self._send(host, port, frame)
            if not out:
                break
        while (event := transport.next_event()) is not None:
            self.journal.append(f"{event.t_ns} {host} {event.kind} {dict(event.fields)}")
        self._set_timer(host)

    def _set_timer(self, host: str) -> None:
        due_ns = self.transports[host].next_timer_ns()
        if due_ns is not None:
            due_ns = max(due_ns, self.now_ns + 1)
            if due_ns < self._wake_ns.get(host, due_ns + 1):
                self._wake_ns[host] = due_ns
                self.at(due_ns, lambda: self._timer(host))

    def tap(self, hear: Callable[[str, int, bytes], bool | None]) -> None:
        """Tell of every frame that a host sends, with its port; a frame of which False is said goes nowhere."""
        send = self._send

        def tapped(host: str, port: int, frame: bytes) -> None:
            if hear(host, port, frame) is not False:
                send(host, port, frame)

        self._send = tapped  # type: ignore[method-assign]

    def disturb(self, **faults: Any) -> None:
        """These faults, or none, on every link."""
        for link in self.links.values():
            link.faults = Faults(**faults)

    def cut(self, up: bool = False) -> None:
        """Take every link down, or bring it back."""
        for link in self.links.values():
            link.up = up

    def kick(self, host: str) -> None:
        """Something was posted."""
        self._pump(host)

    def set_port(self, host: str, port: int, up: bool) -> None:
        self.host_up[host, port] = up
        self.transports[host].port_changed(port, up, self.now_ns)
        self._pump(host)

    # --- packets -------------------------------------------------------------------------------------------------

    def _send(self, host: str, port: int, frame: bytes) -> None:
        if not self.host_up[host, port]:
            return
        parsed = frames.parse(frame, getattr(self.transports[host], "dialect", DEFAULT))
        plane = port - 1
        via, destination = self._path_of.get((host, parsed.dst, parsed.ev)) or self._hashed(plane, parsed)
        self._cross(self.links[plane, via], frame, lambda out: self._last_hop(destination, plane, out))

    def _hashed(self, plane: int, parsed: frames.Frame) -> tuple[str, str]:
        """ECMP: the path follows from addresses and UDP source port."""
        spines = [key[1] for key in self.links if key[0] == plane]
        key = parsed.src + parsed.dst + parsed.ev.to_bytes(4, "big")
        return spines[crc32(key) % len(spines)], self._host_of[parsed.dst]

    def _last_hop(self, host: str, plane: int, frame: bytes) -> None:
        self._cross(self.links[host, plane], frame, lambda out: self._arrive(host, plane + 1, out))

    def _arrive(self, host: str, port: int, frame: bytes) -> None:
        if not self.host_up[host, port]:
            return
        if self._asleep_until[host] > self.now_ns:
            self._inbox[host].append((port, frame))
            return
        self.heard[host].append((port, frame))
        self.transports[host].receive(port, [frame], self.now_ns)
        self._pump(host)

    def _cross(self, link: Link, frame: bytes, then: Callable[[bytes], None]) -> None:
        faults, rng = link.faults, self.rng
        if not link.up or (faults.loss and rng.random() < faults.loss):
            link.dropped += 1
            return
        dscp = frame[14] << 2 & 0x3C | frame[15] >> 6
        data = dscp in (DSCP["trimmable"], DSCP["trimmable_retransmit"], DSCP["no_trim"], DSCP["roce"])
        if data:
            backlog = max(0, link.data_free_ns - self.now_ns) * link.rate_bps // 8_000_000_000
            trimmable = dscp in (DSCP["trimmable"], DSCP["trimmable_retransmit"])
            if link.trim_bytes and trimmable and backlog + len(frame) > link.trim_bytes:
                frame, data = trim(frame, link.lasthop), False
                link.trimmed += 1
            elif backlog + len(frame) > link.depth_bytes:
                link.dropped += 1
                return
            elif link.mark_bytes and rng.random() < (backlog - link.mark_bytes) / (3 * link.mark_bytes):
                frame = frame[:15] + bytes([frame[15] | 0x30]) + frame[16:]
                link.marked += 1
        free_ns = link.data_free_ns if data else link.control_free_ns
        done_ns = max(self.now_ns, free_ns, link.stalled_until_ns) + len(frame) * 8_000_000_000 // link.rate_bps
        if data:
            link.data_free_ns = done_ns
            link.data_bytes += len(frame)
            link.data_packets += 1
        else:
            link.control_free_ns = done_ns
        arrive_ns = done_ns + link.delay_ns
        if faults.reorder and rng.random() < faults.reorder:
            arrive_ns += rng.randrange(faults.reorder_ns + 1)
        if faults.corrupt and rng.random() < faults.corrupt:
            spoiled = bytearray(frame)
            spoiled[rng.randrange(54, len(spoiled))] ^= 1 << rng.randrange(8)
            frame = bytes(spoiled)
        self.at(arrive_ns, lambda: self._deliver(link, frame, then))
        if faults.duplicate and rng.random() < faults.duplicate:
            self.at(arrive_ns + rng.randrange(20_000), lambda: self._deliver(link, frame, then))

    def _deliver(self, link: Link, frame: bytes, then: Callable[[bytes], None]) -> None:
        if link.up:
            then(frame)


def roce_wire(**options: Any) -> Wire:
    """The baseline on a plan's single-plane equivalent: one port at the sum of the rates, bare frames, no trimming."""
    own = {"planes": 1, "rate_bps": 40_000_000_000, "trim": False, "make": RoceEndpoint}
    return Wire(**{**own, "profile_changes": {"encapsulation": "none"}, **options})


def trim(frame: bytes, lasthop: bool, size: int = 128) -> bytes:
    """As the P4 program does: cut, re-mark keeping ECN, rewrite the outer payload length."""
    cut = bytearray(frame[:size])
    dscp = DSCP["trimmed_lasthop" if lasthop else "trimmed"]
    traffic_class = dscp << 2 | (frame[15] >> 4 & 3)
    cut[14] = 0x60 | traffic_class >> 4
    cut[15] = (traffic_class << 4 & 0xF0) | (frame[15] & 0x0F)
    cut[18:20] = (len(cut) - 54).to_bytes(2, "big")
    return bytes(cut)
