"""How long a requester waits: when it asks with probes, when it sends everything again, when it gives up.

Three times run. It asks when the oldest packet has been out for long enough and nothing new was sent or heard for a
while. It retransmits long after the last sign of life: OCP MRC's local ACK timeout, even for the linear retries, ever
longer for the exponential ones.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from endpoint.nic.config import ACK_TIMEOUT_UNIT_NS, RETRIES_WITHOUT_END

if TYPE_CHECKING:
    from endpoint.mrc.flight import Flight
    from endpoint.nic.rtt import RttEstimator

BACKOFF_MAX: Final = 12
"""Doublings of the retransmission timer, where retries are without end."""
FEW_PACKETS: Final = 8
"""A window that an incast has closed, whose queue pairs are the ones that ask in vain (assumed)."""
PROBE_BACKOFF_MAX: Final = 3
"""Doublings of the time between two askings."""


class RetryTimer:
    """Times in ns. `rtt` and `flight` are the requester's own: no timer is shorter than the round trip now takes.
    `trims_before_wait` is how often a packet may be sent again at once after a trim; 0: always."""

    def __init__(
        self,
        timeout: int,
        linear_cnt: int,
        exp_cnt: int,
        jitter_ns: int,
        rtt: RttEstimator,
        flight: Flight,
        trims_before_wait: int,
        rng: Random,
    ) -> None:
        self._rtt = rtt
        self._flight = flight
        self._rule = flight.rule
        self._jitter_ns = jitter_ns
        self._trims_before_wait = trims_before_wait
        self._rng = rng
        self.configure(timeout, linear_cnt, exp_cnt)
        self.fresh = False
        """Whether a write was posted while nothing was under way, and no time has been told since: posting has none."""
        self._quiet_ns = 0
        self._life_ns = 0
        self._oldest_psn, self._first_ns = -1, 0
        """The oldest packet when a probe was last answered, and when it was first sent, by the flight's clock."""
        self._asked = 0
        """Askings in a row without any answer."""
        self._put_off_ns = 0
        self.hold_ns = 0
        """Until then nothing is sent: the peer lacked something, or a packet was trimmed again and again."""
        self.held = False
        """Whether the congestion window holds back what is to be sent, which only an acknowledgement ends."""
        self.retries = 0
        """Retransmission timeouts since the last sign of life; if retries have an end, since packets last arrived."""

    def configure(self, timeout: int, linear_cnt: int, exp_cnt: int) -> None:
        """The local ACK timeout, 1.024 µs * 2^timeout, and how many retries of either kind there are."""
        self._timeout_ns = ACK_TIMEOUT_UNIT_NS << timeout
        self._linear = linear_cnt
        self._most = None if exp_cnt == RETRIES_WITHOUT_END else linear_cnt + exp_cnt

    def hold_back(self) -> bool:
        """The congestion window is full: nothing is sent (False), and the next acknowledgement is urgent."""
        self.held = True
        return False

    def restart(self, now_ns: int) -> None:
        """Nothing was under way until now: silence before this moment means nothing."""
        self.fresh = False
        self._quiet_ns = self._life_ns = now_ns

    def sent(self, left_ns: int) -> None:
        """Data has been handed to a port, whose line has sent it at `left_ns`: silence does not begin before."""
        self._quiet_ns = left_ns

    def waited(self, now_ns: int) -> None:
        """Until now the queue pair waited for its turn, and the packet of that turn brings news by itself."""
        self._quiet_ns = self._life_ns = now_ns

    def heard(self, now_ns: int) -> None:
        """The peer has said something new of what is under way."""
        self.retries = 0
        self._quiet_ns, self._life_ns = max(self._quiet_ns, now_ns), now_ns

    def acknowledged(self, now_ns: int) -> None:
        """Packets have arrived."""
        self._asked = 0
        self.heard(now_ns)

    def alive(self, now_ns: int) -> None:
        """A probe was answered: that asking was not in vain.

        A sign of life puts the timer off, but not for good: a packet that the loss rule misses must not wait longer
        than the timer from when it has been out for one timeout. Retries that have an end are for packets that do not
        arrive, so an answer gives none back, and a copy of the oldest packet begins no new timeout.
        """
        self._asked = 0
        oldest_ns = self._flight.oldest_ns
        if self._most is None:
            self.retries = 0
        else:
            oldest_ns = self._first_sent_ns(oldest_ns)
        self._life_ns = max(self._life_ns, min(now_ns, oldest_ns + self._timeout_ns))

    def _first_sent_ns(self, oldest_ns: int) -> int:
        """When the oldest packet was sent for the first time; `oldest_ns` is when its latest copy was."""
        flight = self._flight
        own_ns = oldest_ns - flight.late_ns
        if self._oldest_psn != flight.una:
            self._oldest_psn, self._first_ns = flight.una, own_ns
        self._first_ns = min(self._first_ns, own_ns)
        return self._first_ns + flight.late_ns

    def asked(self, now_ns: int) -> None:
        """Probes have gone out."""
        self._asked += 1
        self._quiet_ns = now_ns

    @property
    def probes(self) -> int:
        """How many the next asking sends: two, since one plane may be dead, but at first one where congestion has
        closed the window to a few packets: what is missing probably waits in a queue."""
        flight = self._flight
        few = flight.inflight_bytes <= FEW_PACKETS * flight.sizes[flight.una & flight.mask]
        return 1 if self.held and few and not self._asked else 2

    def put_off(self, until_ns: int) -> None:
        """The host has no probe to spare before then."""
        self._put_off_ns = until_ns

    def wait_after_trim_ns(self, tries: int, base_rtt_ns: int) -> int:
        """How long a trimmed packet waits that was sent again `tries` times before; 0: not at all.

        Sent at once, a packet that arrives behind the same burst in each round trip is trimmed as long as that burst
        recurs. A wait of a random part of a round trip takes the packet out of step.
        """
        if not self._trims_before_wait or tries < self._trims_before_wait:
            return 0
        return self._rng.randrange(base_rtt_ns)

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        """This host did not run for `late_ns`, until now: no silence has lasted that long."""
        self._quiet_ns = min(self._quiet_ns + late_ns, now_ns)
        self._life_ns = min(self._life_ns + late_ns, now_ns)

    def expired(self, now_ns: int) -> bool:
        """Count a retransmission timeout; whether it is one too many. What is sent again is asked for anew."""
        self.retries += 1
        self._asked = 0
        self._life_ns = now_ns
        return self._most is not None and self.retries > self._most

    @property
    def ask_due_ns(self) -> int:
        """When to ask with probes: when they can prove a loss, but before the timer would take all for lost.

        The oldest packet must have been out for the longest round trip to expect, and nothing have been sent or heard
        for a round trip that would bring the proof by itself. A NIC with a device profile's patience lets that pass as
        well, in silence only. A question in vain is repeated ever later, and nothing before the host's budget allows.
        """
        wait_ns, patience_ns = self._rule.window_ns, self._rule.patience_ns
        if self.held or not patience_ns:  # held: nothing may have asked for an acknowledgement
            wait_ns = min(wait_ns - patience_ns, self._timeout_ns // 2)
        longest_ns = self._rule.longest_ns
        wait_ns = max(longest_ns + self._jitter_ns if longest_ns else self.round_trip_ns, wait_ns)
        if self._asked:
            due_ns = self._quiet_ns + (wait_ns << min(self._asked, PROBE_BACKOFF_MAX))
        else:
            overdue_ns = min(self._flight.oldest_ns, self._quiet_ns) + wait_ns
            due_ns = max(overdue_ns, self._quiet_ns + self._answer_ns)
        return max(due_ns, self._put_off_ns)

    @property
    def _answer_ns(self) -> int:
        """How long an answer usually takes: the smoothed round trip and twice by how much those of one plane vary
        lately, but no more than the longest to expect."""
        usual_ns, longest_ns = self._rtt.smoothed_ns, self._rule.longest_ns
        if longest_ns:
            usual_ns = min(usual_ns + 2 * (longest_ns - self._rule.slowest_ns), longest_ns)
        return usual_ns + self._jitter_ns

    @property
    def retry_due_ns(self) -> int:
        """When to send everything again."""
        excess = min(self.retries - self._linear, BACKOFF_MAX)
        timeout_ns = max(self._timeout_ns, 2 * (self.round_trip_ns + self._rule.patience_ns))
        return self._life_ns + (timeout_ns << max(0, excess + 1))

    @property
    def round_trip_ns(self) -> int:
        """The longest round trip to expect, and the lateness of a process.

        Once there are samples of planes, the variation of all round trips together does not count: the difference
        between planes is part of it, and the slowest plane's round trip has that already.
        """
        rtt, longest_ns = self._rtt, self._rule.longest_ns
        expected_ns = max(rtt.smoothed_ns, longest_ns) if longest_ns else rtt.smoothed_ns + 4 * rtt.variation_ns
        return expected_ns + self._jitter_ns
