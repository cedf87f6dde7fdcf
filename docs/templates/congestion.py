"""Template of a congestion control: ./lab run incast --world simulated --setting congestion=congestion.py:Mine"""

from endpoint.mrc import Congestion, Parameter


class Mine(Congestion):
    """Additive increase, multiplicative decrease, at most once per round trip."""

    parameters = (Parameter("cut", float, 0.5, 0.05, 1.0, "", "what a mark or a trim leaves of the window"),)

    def __init__(self, path, values, shared):
        super().__init__(path, values, shared)
        self.mtu = path.mtu_bytes
        self.rtt_ns = path.base_rtt_ns
        self.largest = path.peer_bdp_bytes * 3 // 2
        self.cut = values["cut"]
        self.cut_ns = -self.rtt_ns
        self.window_bytes = max(self.mtu, self.largest // path.sharers)

    def on_ack(self, now_ns, acked_bytes, rtt_ns, marked, inflight_bytes):
        if marked:
            self.decrease(now_ns)
        else:
            grown = self.window_bytes + self.mtu * acked_bytes // self.window_bytes
            self.window_bytes = min(self.largest, grown)

    def on_trim(self, now_ns, size, inflight_bytes):
        self.decrease(now_ns)

    def on_timeout(self, now_ns, lost_bytes):
        self.window_bytes = self.mtu

    def decrease(self, now_ns):
        if now_ns - self.cut_ns > self.rtt_ns:
            self.cut_ns = now_ns
            self.window_bytes = max(self.mtu, int(self.window_bytes * self.cut))
