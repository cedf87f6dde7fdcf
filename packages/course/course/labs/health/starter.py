"""Lab 6: path health. The page: ./lab course page 6. Check with: ./lab check 6"""


class Health:
    """Says which paths are out, and which of them to probe. Packets take turns on the others."""

    def __init__(self, paths, rtt_ns):
        # paths: [{"number": 0, "plane": 0, "spine": 0}, ...]; rtt_ns: the round trip of an idle path
        self.out = set()  # numbers of paths that carry no packets; read after every call
        self.probes = set()  # numbers of paths to probe now: each call that leaves a number here sends a probe
        # GAP 1: what do you know of each path?

    def on_acked(self, now_ns, path):
        """A packet arrived on this path."""
        # GAP 2: what does an arrival say in favour of a path?

    def on_lost(self, now_ns, path):
        """A packet was lost on this path."""
        # GAP 3: when is it enough?

    def on_probe_answered(self, now_ns, path):
        """A probe came back."""
        # GAP 4: when does the path come back?

    def on_time(self, now_ns):
        """Called for every packet that is sent while a path is out."""
        # GAP 5: which paths to probe, and how often? Empty self.probes first.
