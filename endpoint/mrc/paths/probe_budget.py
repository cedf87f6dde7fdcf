"""How many probes a host may send: of abandoned EVs and of silence, each a share of what its queue pairs send, and of
ways back.

Without a limit, a thousand senders that gave paths up in an incast fill half of the receiver's link with probes, while
each sends hardly any data. A share of what a host sends gives way in an incast as its data does.

Queue pairs that wanted more probes than they got wait in a queue. Each one keeps a probe back for every other ahead of
it, so that none uses up the probes of another. A full budget has a probe for any that asks.
"""

from typing import Final

from endpoint.mrc.paths.ev_set import EvPath
from endpoint.nic import wire
from endpoint.nic.port import PortSet
from endpoint.nic.wire import PSN_MASK, Opcode

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
        probe = self._waiting.get(probe_id)
        if probe is None or probe[0].ev != entropy:
            return None
        del self._waiting[probe_id]
        return probe


PROBE_BYTES: Final = 150
"""A probe as a frame, with what surrounds it."""
SAVED_MAX: Final = 64
"""Probes that a host may send at once when it has sent none for long."""
REVERSE_AT_ONCE: Final = 8
"""The same for EV probes of ways back, of which a queue pair sends one per round trip at most."""


class ProbeBudget:
    """One host's. Beside `share` of its bytes, one probe per `interval_ns`, so that a silent host probes too; up to
    `saved_max` at once."""

    def __init__(self, ports: PortSet, share: float, interval_ns: int, saved_max: int = SAVED_MAX) -> None:
        self._ports = ports
        self._share = share / PROBE_BYTES
        self._interval_ns = interval_ns
        self._saved = self._saved_max = float(saved_max)
        self._sent_bytes = 0
        self._counted_ns = 0
        self.waiting: dict[int, None] = {}
        """The queue pairs that wait for a probe, by number, in the order of their turns."""

    def allowed(self, qpn: int, now_ns: int) -> int:
        """Probes that this queue pair may send now."""
        sent_bytes = 0
        for port in self._ports.list:
            sent_bytes += port.tx_bytes
        earned = (sent_bytes - self._sent_bytes) * self._share + (now_ns - self._counted_ns) / self._interval_ns
        self._sent_bytes, self._counted_ns = sent_bytes, now_ns
        self._saved = min(self._saved + earned, self._saved_max)
        return max(0, int(self._saved) - self._ahead_of(qpn))

    def spend(self, qpn: int, count: int, *, more: bool) -> None:
        """This queue pair has sent so many probes; with `more` it would have sent more, and waits for its turn."""
        self._saved -= count
        if count or not more:
            self.leave(qpn)
        if more:
            self.waiting.setdefault(qpn)

    def leave(self, qpn: int) -> None:
        """This queue pair has nothing to probe any more."""
        self.waiting.pop(qpn, None)

    def next_ns(self, qpn: int, now_ns: int) -> int:
        """When to ask again: after an interval at most, because a host that sends earns more than one in it."""
        missing = 1 - self._saved + (self._ahead_of(qpn) if qpn in self.waiting else 0)
        return now_ns if missing <= 0 else now_ns + int(min(missing, 1.0) * self._interval_ns) + 1

    def _ahead_of(self, qpn: int) -> int:
        """How many probes to keep back for queue pairs whose turn is before this one's."""
        ahead = 0
        for other in self.waiting:
            if other == qpn or ahead == self._saved_max - 1:
                break
            ahead += 1
        return ahead


ASKED_AT_ONCE: Final = 8
"""Probes that a host may spend on silence before it has sent anything."""
KEPT_FOR_ENDS: Final = 8
"""Probes that are left to messages of which everything has been sent: nothing but an answer tells what they lost."""


class AskingBudget:
    """How many probes one host may send because its queue pairs hear nothing: `share` of the data packets that all of
    them send, and beside that one per `interval_ns`."""

    def __init__(self, share: float, interval_ns: int, now_ns: int) -> None:
        self._share = share
        self._interval_ns = interval_ns
        self._saved = float(ASKED_AT_ONCE)
        self._counted_ns = now_ns

    def sent(self, packets: int) -> None:
        """So many data packets have gone out, copies among them."""
        self._saved = min(self._saved + packets * self._share, float(SAVED_MAX))

    def take(self, count: int, now_ns: int, *, last: bool) -> int:
        """Up to `count` probes, for a queue pair to send now; `last`: it has nothing more to send."""
        earned = (now_ns - self._counted_ns) / self._interval_ns
        self._counted_ns = now_ns
        self._saved = min(self._saved + earned, float(SAVED_MAX))
        count = max(0, min(count, int(self._saved) - (0 if last else KEPT_FOR_ENDS)))
        self._saved -= count
        return count

    def justified(self) -> None:
        """A probe has proved a loss: it costs nothing."""
        self._saved = min(self._saved + 1, float(SAVED_MAX))

    def next_ns(self, now_ns: int) -> int:
        """When to ask again."""
        return now_ns + self._interval_ns // 8 + 1  # data that is sent meanwhile may earn one sooner
