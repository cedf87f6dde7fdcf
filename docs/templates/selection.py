"""Template of a path selection: ./lab run grey-link --world simulated --setting selection=selection.py:Mine"""

from endpoint.mrc import Parameter, Selection


class Mine(Selection):
    """The port that is free, and on it a random EV that was not marked lately."""

    heeds_signals = True  # False: losses and marks leave every EV in rotation
    parameters = (Parameter("rest", int, 8, 0, 1000, "packets", "how long a marked EV rests"),)

    def __init__(self, evs, rng, values):
        super().__init__(evs, rng, values)
        self.rng = rng  # the only source of chance
        self.rest = values["rest"]
        self.sent = 0
        self.resting = {}  # EV → count of packets until which it rests

    def next(self, usable):
        planes = [plane for plane in self.evs.live if plane.bit & usable]
        if not planes:
            return None  # wait for a port
        active = self.rng.choice(planes).active
        rested = [path for path in active if self.resting.get(path.ev, 0) <= self.sent]
        return self.rng.choice(rested or active)

    def on_packet_sent(self, now_ns, path, size):
        self.sent += 1  # not in next, which probes ask as well

    def on_packet_acked(self, now_ns, path, size, rtt_ns, marked):
        if marked:
            self.resting[path.ev] = self.sent + self.rest
