"""Wrong solutions of lab 7, and attempts to pass without solving it."""

from tests.course.mutants.mutant import Mutant, instead, whole

GROW = "self.window = min(self.most, self.window + 2 * self.mtu * size / self.window)"
CUT = "self.window = max(self.mtu, self.window * share)"

MUTANTS = (
    Mutant("a fixed window", instead(CUT, "pass"), "must shrink"),
    Mutant("never grows", instead(GROW, "pass"), "does it grow"),
    Mutant("grows by a byte", instead("2 * self.mtu * size / self.window", "1"), "does it grow|has to grow again"),
    Mutant("cut to one packet", instead(CUT, "self.window = self.mtu"), "cut too deep|must lose more|grow again"),
    Mutant("bytes taken for packets", instead("self.window = bdp\n", "self.window = bdp / mtu\n        self.most = 1.5 * bdp / mtu\n"), "does it grow"),
    Mutant("grows on long round trips", instead("rtt_ns < self.target_ns", "rtt_ns > self.target_ns"), "does it grow|must shrink|cut too deep|window must be"),
    Mutant("half of the path", instead("self.most = 1.5 * bdp", "self.most = bdp / 2"), "does it grow"),
    Mutant("no thought of None", instead("rtt_ns is None or ", ""), "NoneType"),
    Mutant("target in microseconds", instead("self.target_ns = 1.5 * rtt_ns", "self.target_ns = 1.5 * rtt_ns * 1000"), "must shrink|must lose more"),
    Mutant("grows as fast as packets arrive", instead("2 * self.mtu * size / self.window", "40 * size"), "must shrink|must lose more"),
    Mutant("no window below zero", instead(CUT, "self.window -= 2 * self.most"), "window must be a number"),
)  # fmt: skip

CHEATS = (
    Mutant("an endless window", whole("class Window:\n    def __init__(self, *_): self.window = 1 << 39\n    def on_ack(self, *_): pass\n    def on_trim(self, *_): pass\n"), "must shrink"),
    Mutant("one packet, no trims", whole("class Window:\n    def __init__(self, mtu, *_): self.window = mtu\n    def on_ack(self, *_): pass\n    def on_trim(self, *_): pass\n"), "does it grow"),
    Mutant("infinity", whole("class Window:\n    def __init__(self, *_): self.window = float('inf')\n"), "JSON compliant"),
    Mutant("a number that lies", whole("class N(int):\n    def __le__(self, other): return True\n    def __ge__(self, other): return True\nclass Window:\n    def __init__(self, *_): self.window = N(-5)\n"), "window must be a number"),
    Mutant("waits on the wall clock", whole("import time\nclass Window:\n    def __init__(self, *_):\n        while True: time.time()\n"), "no answer within"),
)  # fmt: skip
