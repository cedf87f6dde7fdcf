"""A path selection that is wrong: a random EV of a free port, but never again one that lost a packet.

Chapter 12 of docs/guide.md compares this one with MRC, and finds out what is wrong.
"""

from endpoint.mrc import Selection


class Grudge(Selection):
    def __init__(self, evs, rng, values):
        super().__init__(evs, rng, values)
        self.rng = rng
        self.bad = set()

    def next(self, usable):
        planes = [plane for plane in self.evs.live if plane.bit & usable]
        good = [path for plane in planes for path in plane.active if path.ev not in self.bad]
        return self.rng.choice(good) if good else None

    def on_packet_lost(self, now_ns, path, size, proved):
        self.bad.add(path.ev)
