"""Lab 5: spraying. The page: ./lab course page 5. Check with: ./lab check 5"""


class Spray:
    """Chooses the path of every packet of one queue pair."""

    def __init__(self, paths):
        # paths: [{"number": 0, "plane": 0, "spine": 0}, ...]
        self.paths = paths
        # GAP 1: what do you have to remember of each path?

    def choose(self, usable):
        """The number of a path from the list `usable`, or None to wait for a port."""
        # GAP 2: this takes the first path that may send, always.
        return usable[0]

    def on_sent(self, path):
        pass  # GAP 3

    def on_acked(self, path, marked):
        pass  # GAP 4

    def on_trimmed(self, path):
        pass  # GAP 5

    def on_lost(self, path):
        pass  # GAP 6
