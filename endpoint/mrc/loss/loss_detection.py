"""Loss detection: from what is acknowledged, which packets are lost, and when the peer is asked.

An algorithm is one file and one line in `endpoint.mrc.algorithms`.
"""

from __future__ import annotations

from typing import ClassVar

from mypy_extensions import mypyc_attr

from endpoint.mrc.loss.packet_window import PacketWindow
from endpoint.mrc.loss.sent_log import SentLog
from endpoint.mrc.parameter import Parameter, Values
from endpoint.mrc.paths.signals import Signals


@mypyc_attr(allow_interpreted_subclasses=True)
class LossDetection(Signals):
    """One queue pair's loss rule. Times are ns by the flight's clock, which stands still while the host does.

    The retransmission timer stays as it is: packets that no rule proves lost are sent again after the ACK timeout.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = ()

    def __init__(self, base_rtt_ns: int, jitter_ns: int, values: Values) -> None:
        self.window_ns = base_rtt_ns + jitter_ns
        """How long the oldest packet may be out, and nothing be heard, before two probes ask for it."""
        self.patience_ns = 0
        """How much longer than it must this NIC waits (`be_patient`)."""
        self.slowest_ns = 0
        """Largest recent round trip of the slowest plane; 0: no sample yet."""
        self.longest_ns = 0
        """The longest round trip to expect, of any plane; 0: no sample yet."""
        self.log = SentLog()
        """(PSN, time sent) of every transmission, oldest first. A rule takes out what it has judged."""
        self.newest_ns = -1
        """When the latest packet or probe that is known to have arrived was sent."""

    def be_patient(self, patience_ns: int) -> None:
        """Wait so much longer than the rule must (setting `loss_patience_ns`)."""
        self.patience_ns = patience_ns
        self.window_ns += patience_ns

    def overdue(self, flight: PacketWindow, window_bytes: int) -> list[int]:
        """The packets that are lost now, as offsets from `flight.una`. Asked after each acknowledgement.

        Bit i of `flight.acked` and `flight.lost` is PSN una + i; rings such as `flight.sent_ns` are indexed by
        PSN & `flight.mask`. `window_bytes` is the congestion window.
        """
        raise NotImplementedError

    def rtt_sample(self, plane: int, rtt_ns: int) -> None:
        """A round trip over `plane`, of a packet that was sent once."""

    def late_rtt(self, plane: int, rtt_ns: int) -> None:
        """A packet taken for lost has just arrived over `plane`, `rtt_ns` after it was sent."""

    def late_arrival(self) -> None:
        """A packet taken for lost by this rule has arrived some time ago."""

    def true_loss(self) -> None:
        """A packet taken for lost by this rule was lost: its copy has been acknowledged."""

    def forget_plane(self, plane: int) -> None:
        """The plane is down: its delay says nothing any more."""

    def prune(self, flight: PacketWindow) -> None:
        """Drop log entries of packets that are not under way any more, once there are many."""
        log, sent_ns, mask = self.log, flight.sent_ns, flight.mask
        if len(log) <= 4 * (mask + 1):
            return
        kept = [entry for entry in log if entry[0] >= flight.una and sent_ns[entry[0] & mask] == entry[1]]
        log.clear()
        log.extend(kept)

    def none_sent_after(self, latest_ns: int) -> None:
        """The flight's clock was set back to `latest_ns`: packets sent later count as sent then."""
        moved = [(psn, min(sent_ns, latest_ns)) for psn, sent_ns in self.log]
        self.log.clear()
        self.log.extend(moved)
        self.newest_ns = min(self.newest_ns, latest_ns)
