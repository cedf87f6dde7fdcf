"""Reference of lab 7: grow by a packet or two per round trip, and shrink by the excess of the delay."""


class Window:
    def __init__(self, mtu, rtt_ns, bdp):
        self.mtu = mtu
        self.rtt_ns = rtt_ns
        self.target_ns = 1.5 * rtt_ns
        self.most = 1.5 * bdp
        self.window = bdp
        self.cut_ns = -rtt_ns

    def on_ack(self, now_ns, size, rtt_ns, marked):
        if rtt_ns is None or rtt_ns < self.target_ns:
            self.window = min(self.most, self.window + 2 * self.mtu * size / self.window)
        else:
            excess = (rtt_ns - self.target_ns) / rtt_ns
            self.cut(now_ns, max(0.5, 1 - 0.8 * excess))

    def on_trim(self, now_ns, size):
        self.cut(now_ns, 0.5)

    def on_timeout(self, now_ns, size):
        self.window = self.mtu

    def cut(self, now_ns, share):
        if now_ns - self.cut_ns > self.rtt_ns:  # once per round trip: later signals are of packets from before
            self.cut_ns = now_ns
            self.window = max(self.mtu, self.window * share)
