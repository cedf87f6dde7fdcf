"""Reliability probes under way: they ask the responder what has arrived, and prove that an EV carries packets."""

from __future__ import annotations

from endpoint.mrc.paths.ev_set import EvPath
from endpoint.nic import wire
from endpoint.nic.psn import PSN_MASK
from endpoint.nic.wire import Opcode

KEPT = 1024
"""Probes whose answers are still waited for; the oldest are forgotten."""

WANTED_MAX = 8
"""Probes that a path selection gets at a time."""


class ProbeTable:
    """One QP's probes, by their 16-bit ids; `sent` counts them."""

    def __init__(self, dest_qpn: int, traffic_class: int) -> None:
        self._dest_qpn = dest_qpn
        self._traffic_class = traffic_class
        self._id = 0
        self._waiting: dict[int, tuple[EvPath, int]] = {}
        self.sent = 0

    def send(self, path: EvPath, psn: int, now_ns: int) -> None:
        """Probe on this EV: answered with a SACK of everything from `psn` on."""
        self._id = (self._id + 1) & 0xFFFF
        self._waiting[self._id] = (path, now_ns)
        if len(self._waiting) > KEPT:
            del self._waiting[next(iter(self._waiting))]
        self.sent += 1
        bth = wire.Bth(Opcode.PROBE, self._dest_qpn, psn & PSN_MASK, variant=0xFF)
        transport = bytearray(bth.pack() + wire.Peth(self._id).pack())
        path.port.queue_control(path.route.seal(transport, self._traffic_class))

    def send_wanted(self, wanted: list[EvPath], psn: int, now_ns: int) -> None:
        """Probe the EVs that a path selection asks about, at most so many at a time, and empty its list."""
        for path in wanted[:WANTED_MAX]:
            if path.plane.wanted:
                self.send(path, psn, now_ns)
        wanted.clear()

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        """This host did not run for `late_ns`, until now: probes under way count as sent so much later."""
        self._waiting = {id_: (path, min(sent + late_ns, now_ns)) for id_, (path, sent) in self._waiting.items()}

    def answered(self, probe_id: int, entropy: int) -> tuple[EvPath, int] | None:
        """Path and time of sending of the probe that this answers; None if there is none, or the EV is another."""
        found = self._waiting.get(probe_id)
        if found is None or found[0].ev != entropy:
            return None
        del self._waiting[probe_id]
        return found
