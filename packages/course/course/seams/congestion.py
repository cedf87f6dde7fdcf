"""Lab 7: a congestion window. The student's class hears acknowledgements, marks and trims, and keeps `window`."""

from typing import Any

from course.box.box import Box, BoxError
from course.seams.log import Seat
from endpoint.mrc import Congestion, PathTraits, Values

WINDOW_MAX = 1 << 40


class WindowCongestion(Congestion):
    """The grader's side of one queue pair's window."""

    box: Box
    seat: Seat

    def __init__(self, path: PathTraits, values: Values, shared: dict[str, Any]) -> None:
        super().__init__(path, values, shared)
        self._mtu, self.windows = path.mtu_bytes, list[tuple[int, int]]()
        self.seat.windows.append(self.windows)
        self.object, state = self.box.make(
            "Window", path.mtu_bytes, path.base_rtt_ns, path.peer_bdp_bytes, watch=("window",)
        )
        self._take(0, state)

    def _take(self, now_ns: int, state: dict[str, Any]) -> None:
        window = state.get("window")
        if isinstance(window, bool) or not isinstance(window, int | float) or not 0 <= window <= WINDOW_MAX:
            raise BoxError(f"window must be a number of bytes from 0 to {WINDOW_MAX} (got {window!r})")
        self.window_bytes = max(int(window), self._mtu)
        self.windows.append((now_ns, self.window_bytes))

    def _hear(self, now_ns: int, method: str, *arguments: Any) -> None:
        _, state = self.box.tell([(method, [now_ns, *arguments])], self.object, ("window",))
        self._take(now_ns, state)

    def on_ack(self, now_ns: int, acked_bytes: int, rtt_ns: int | None, marked: bool, inflight_bytes: int) -> None:
        self._hear(now_ns, "on_ack", acked_bytes, rtt_ns, marked)

    def on_trim(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        self._hear(now_ns, "on_trim", size)

    def on_loss(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        self._hear(now_ns, "?on_loss", size)

    def on_timeout(self, now_ns: int, lost_bytes: int) -> None:
        self._hear(now_ns, "?on_timeout", lost_bytes)
