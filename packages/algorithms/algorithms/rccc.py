"""RCCC, receiver-credit congestion control of Ultra Ethernet: a receiver deals out its own line, packet by packet.

Source: the behaviour of `UecPullPacer` and `OversubscribedCC` in uet-htsim (github.com/ultraethernet/uet-htsim,
htsim/sim/uec.cpp and oversubscribed_cc.cpp), whose rates the tests compare with recorded ones.

Different from UET: a requester of MRC cannot say how much it wants, so that every queue pair of which something has
arrived gets credit in turn, until one bandwidth-delay product of it is unused (the reference's credit for idle
senders). Credit travels in SACKs. A packet that arrives trimmed has used its credit; what is lost without a trace is
sent again by the credit that it had.
"""

from collections import deque
from typing import Any, ClassVar, Final

from endpoint.mrc import CREDIT_UNIT, Congestion, CreditGranter, Parameter, PathTraits, Values
from endpoint.nic import NEVER

OVERHEAD: Final = 150
"""Bytes of a full packet that are not payload: headers, ICRC, Ethernet's FCS."""
PERIOD_RTTS: Final = 1.5
RAISE, MARKS_WEIGHT, RATE_MIN = 0.01, 0.5, 0.01
GRANTS_MAX: Final = 64


class Rccc(Congestion):
    """The sender may send what it was granted; and one bandwidth-delay product at first, unasked."""

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("grant", int, 4, 1, 64, "packets", "how much one grant allows"),
        Parameter("rate", float, 0.99, 0.1, 1.0, "", "share of the receiver's line that is granted"),
        Parameter("marks", float, 0.3, 0.0, 1.0, "", "share of marked packets from which on grants go slower"),
        Parameter("cut", float, 0.5, 0.0, 1.0, "", "how much of the excess of marks is taken off the rate"),
    )

    def __init__(self, path: PathTraits, values: Values, shared: dict[str, Any]) -> None:
        super().__init__(path, values, shared)
        self._credit = max(path.peer_bdp_bytes // path.sharers, path.mtu_bytes)
        self._inflight = 0
        self._settle(0)

    @classmethod
    def receiver(cls, path: PathTraits, values: Values) -> CreditGranter | None:
        return RcccReceiver(path, values)

    def _settle(self, inflight_bytes: int) -> None:
        self._inflight = inflight_bytes
        self.window_bytes = max(0, inflight_bytes + self._credit)

    def on_credit(self, now_ns: int, granted_bytes: int, inflight_bytes: int) -> None:
        self._credit += granted_bytes
        self._settle(inflight_bytes)

    def on_packet_sent(self, now_ns: int, path: Any, size: int) -> None:
        self._credit = max(0, self._credit - size)  # one packet may go without credit, and is no debt
        self._settle(self._inflight + size)

    def on_ack(self, now_ns: int, acked_bytes: int, rtt_ns: int | None, marked: bool, inflight_bytes: int) -> None:
        self._settle(inflight_bytes)

    def on_trim(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        self._settle(inflight_bytes)

    def on_loss(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        self._credit += size
        self._settle(inflight_bytes)

    def on_timeout(self, now_ns: int, lost_bytes: int) -> None:
        self._credit += lost_bytes
        self._settle(self._inflight - lost_bytes)


class RcccReceiver(CreditGranter):
    """Grants go out at `rate`, one queue pair after the other; the fabric's marks and trims lower the rate."""

    def __init__(self, path: PathTraits, values: Values) -> None:
        super().__init__()
        self._most = max(path.network_bdp_bytes, 2 * path.mtu_bytes)
        self._quantum = -(-int(values["grant"]) * path.mtu_bytes // CREDIT_UNIT) * CREDIT_UNIT
        share = float(values["rate"]) * path.mtu_bytes / (path.mtu_bytes + OVERHEAD)
        self._grant_ns = self._quantum * 8e9 / (path.rate_bps * share)
        self._period_ns = int(PERIOD_RTTS * (path.network_rtt_ns + path.jitter_ns))
        self._target, self._cut = float(values["marks"]), float(values["cut"])
        self._ports = 1.0
        self._unused: dict[int, int] = {}
        """Bytes granted to each queue pair that have not arrived."""
        self._turns: deque[int] = deque()
        self._free_ns = self._settled_ns = 0
        self._arrived = self._marked = self._trimmed = self._trimmed_last = 0
        self.rate, self._marks, self._calm = 1.0, 0.0, 0

    def on_packet_arrived(self, now_ns: int, qp: int, size: int, marked: bool) -> None:
        self._marked += marked
        self._used(now_ns, qp, size)

    def on_packet_trimmed(self, now_ns: int, qp: int, size: int, last_hop: bool) -> None:
        self._trimmed_last += last_hop
        self._trimmed += not last_hop
        self._used(now_ns, qp, size)

    def on_ports_changed(self, now_ns: int, share: float) -> None:
        self._ports = max(share, 0.01)

    def on_closed(self, qp: int) -> None:
        self._unused.pop(qp, None)

    def _used(self, now_ns: int, qp: int, size: int) -> None:
        self._arrived += 1
        if now_ns - self._settled_ns >= self._period_ns:
            self._settled_ns = now_ns
            self.adjust(self._arrived, self._marked, self._trimmed, self._trimmed_last)
            self._arrived = self._marked = self._trimmed = self._trimmed_last = 0
        self._unused[qp] = max(0, self._unused.get(qp, 0) - size)
        if qp not in self._turns and self._unused[qp] < self._most:
            self._turns.append(qp)
            self.due_ns = max(now_ns, self._free_ns)

    def grants(self, now_ns: int) -> list[tuple[int, int]]:
        granted: list[tuple[int, int]] = []
        self._free_ns = max(self._free_ns, now_ns - self._period_ns)  # a host that was late catches up a little
        while self._turns and self._free_ns <= now_ns and len(granted) < GRANTS_MAX:
            qp = self._turns.popleft()
            if qp not in self._unused:
                continue
            self._unused[qp] += self._quantum
            if self._unused[qp] < self._most:
                self._turns.append(qp)
            granted.append((qp, self._quantum))
            self._free_ns += int(self._grant_ns / (self.rate * self._ports))
        self.due_ns = max(now_ns, self._free_ns) if self._turns else NEVER
        return granted

    def adjust(self, arrived: int, marked: int, trimmed: int, trimmed_last: int) -> None:
        """Once a period: lower the rate where the fabric is full, by marks and by trims before the last hop."""
        whole = arrived - trimmed - trimmed_last
        before = self.rate
        self.rate -= trimmed / arrived if arrived else 0.0
        self._marks += MARKS_WEIGHT * ((marked / whole if whole else 0.0) - self._marks)
        if self._marks > self._target and self._cut:
            self.rate *= 1 - (self._marks - self._target) * self._cut
        elif not trimmed:
            self.rate = before + RAISE * (1 if marked else 2.0 ** min(self._calm, 60))
            self._calm += 1
        if self.rate < before:
            self._calm = 0
        self.rate = min(1.0, max(RATE_MIN, self.rate))
