"""Lab 7: a congestion window. The page: ./lab course page 7. Check with: ./lab check 7"""


class Window:
    """Keeps `self.window`: the bytes that one queue pair may have under way."""

    def __init__(self, mtu, rtt_ns, bdp):
        # mtu: bytes of a full packet; rtt_ns: round trip of an idle path; bdp: bytes that fill all ports for that long
        self.mtu = mtu
        self.rtt_ns = rtt_ns
        self.bdp = bdp
        self.window = bdp / 2  # GAP 1: where does a window begin, and how large may it become?

    def on_ack(self, now_ns, size, rtt_ns, marked):
        """`size` new bytes were acknowledged. `rtt_ns` is None where it can't be known."""
        # GAP 2: when to grow, and by how much? When to shrink?

    def on_trim(self, now_ns, size):
        """A switch had no room for a packet of this size."""
        # GAP 3

    def on_timeout(self, now_ns, size):
        """Nothing was heard for long."""
        # GAP 4
