"""Reference of lab 5: the path with the fewest packets under way, and of those the one that was used least."""


class Spray:
    def __init__(self, paths):
        self.flying = [0] * len(paths)
        self.sent = [0] * len(paths)

    def choose(self, usable):
        return min(usable, key=lambda path: (self.flying[path], self.sent[path]))

    def on_sent(self, path):
        self.flying[path] += 1
        self.sent[path] += 1

    def on_acked(self, path, marked):
        self.flying[path] -= 1

    def on_trimmed(self, path):
        self.flying[path] -= 1

    def on_lost(self, path):
        self.flying[path] -= 1
