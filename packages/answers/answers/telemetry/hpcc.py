"""HPCC: the window follows the load of the most loaded link, as its switches report it.

Source: Y. Li and others, "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1. The tests compare
windows with those of the authors' simulator (github.com/alibaba-edu/High-Precision-Congestion-Control).

The paper has one path per flow. Here each path has its own last report, and the load that the window follows is the
mean over the paths that have reported: with one path the paper's.
"""

from typing import Any, ClassVar

from answers.telemetry.edge import EDGE, Hop, report
from endpoint.mrc import Congestion, Parameter, PathTraits, Values

WRAP = (1 << 32) - 1


class Hpcc(Congestion):
    """Needs switches that write telemetry (`--transport mrc-int`); without a report the window stays as it is. Losses
    and timeouts change nothing, since the paper's network loses no packet to a queue."""

    edge: ClassVar[str] = EDGE
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("eta", float, 0.95, 0.1, 1.0, "", "the load that is aimed at"),
        Parameter("stages", int, 5, 0, 1000, "round trips", "of additive increase before a multiplicative one"),
        Parameter("flows", int, 16, 1, 100_000, "flows", "that may share a link: an increase is the room of one"),
    )

    def __init__(self, path: PathTraits, values: Values, shared: dict[str, Any]) -> None:
        super().__init__(path, values, shared)
        self._eta, self._stages = float(values["eta"]), int(values["stages"])
        self._base_us = path.base_rtt_ns / 1000
        self._mtu, self._largest = path.mtu_bytes, max(path.peer_bdp_bytes, path.mtu_bytes)
        self._increase = self._largest * (1 - self._eta) / int(values["flows"])
        self._reference = float(self._largest)
        self.window_bytes = self._largest
        self._last: dict[bytes, tuple[Hop, ...]] = {}
        """The last report of each path."""
        self._load = 1.0
        self._stage = 0
        self._old_bytes = 0
        """Bytes that were under way at the last change of the reference and are not acknowledged."""

    def on_ack(self, now_ns: int, acked_bytes: int, rtt_ns: int | None, marked: bool, inflight_bytes: int) -> None:
        self._old_bytes -= acked_bytes
        told = report()
        if told is None:
            return
        if not self._last:
            self._old_bytes = inflight_bytes
        before = self._last.get(told.path)
        if before is not None and len(before) == len(told.hops):
            if not self._measure(before, told.hops):
                return
            self._change(inflight_bytes)
        self._last[told.path] = told.hops

    def _measure(self, before: tuple[Hop, ...], after: tuple[Hop, ...]) -> bool:
        """Take in a path's report. False: too soon, no time has passed at a hop; or a hop has no rate."""
        most, gap_us = 0.0, 0
        for old, new in zip(before, after, strict=True):
            apart_us = new.time_us - old.time_us & WRAP
            if not apart_us or not new.rate_kbps:
                return False
            bytes_per_us = new.rate_kbps / 8000
            queued = min(old.queue_bytes, new.queue_bytes) / (bytes_per_us * self._base_us)
            load = queued + (new.sent_bytes - old.sent_bytes & WRAP) / apart_us / bytes_per_us
            if load > most:
                most, gap_us = load, apart_us
        weight = min(gap_us / self._base_us, 1.0) / len(self._last)
        self._load += weight * (most - self._load)
        return True

    def _change(self, inflight_bytes: int) -> None:
        """The window of this load; once per round trip it becomes the reference, from which windows are computed."""
        excess = self._load / self._eta
        multiply = excess >= 1 or self._stage >= self._stages
        window = (self._reference / excess if multiply else self._reference) + self._increase
        window = min(max(window, float(self._mtu)), float(self._largest))
        self.window_bytes = int(window)
        if self._old_bytes < 0:
            self._reference, self._old_bytes = window, inflight_bytes
            self._stage = 0 if multiply else self._stage + 1
