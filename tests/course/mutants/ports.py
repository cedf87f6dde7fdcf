"""Wrong solutions of lab 8, and attempts to pass without solving it."""

from tests.course.mutants.mutant import Mutant, instead, whole

TELL = "self.send = [(peer, plane, self.number) for peer in sorted(self.unanswered) for plane in self.up]"
WAKE = "self.wake_ns = now_ns + 2 * self.rtt_ns if self.unanswered else None"
NEWS = "if number < self.newest.get(peer, 0):"
QUIET = (
    "    def on_ports(self, now_ns, up, peers): pass\n    def on_update(self, *_): return True\n"
    "    def on_answer(self, *_): pass\n    def on_time(self, *_): pass\n"
)
START = "class Telling:\n    def __init__(self, now_ns, name, planes, rtt_ns):\n        self.send = []; self.wake_ns = None; self.believed = {}\n"

MUTANTS = (
    Mutant("tells nobody", instead(TELL, "self.send = []"), "sent no update"),
    Mutant("tells one peer at a time", instead("sorted(self.unanswered) for", "sorted(self.unanswered)[:1] for"), "h3"),
    Mutant("tells by the port that is down", instead(TELL, TELL.replace("in self.up]", "in range(3) if plane not in self.up]")), "whose port is down|sent no update"),
    Mutant("tells by one port only", instead(TELL, TELL.replace("in self.up]", "in self.up[:1]]")), "send by every port"),
    Mutant("never repeats", instead(WAKE, "self.wake_ns = None"), "repeat it"),
    Mutant("never stops", instead("self.unanswered.discard(peer)", "pass"), "must not be repeated"),
    Mutant("repeats at once", instead("2 * self.rtt_ns", "self.rtt_ns // 20"), "about every two round trips"),
    Mutant("heeds what was overtaken", instead(NEWS, "if False:"), "overtaken"),
    Mutant("one number for all", instead("self.number += 1", "self.number = 1"), "overtaken|must not be repeated"),
    Mutant("never answers", instead("        return True\n", "        return False\n"), "must not be repeated"),
    Mutant("believes nothing", instead("self.believed[peer] = up", "pass"), "make of believed"),
    Mutant("tells of losses only", instead("        self.tell(now_ns)\n\n    def tell", "        if len(up) < 3:\n            self.tell(now_ns)\n\n    def tell"), "sent no update"),
    Mutant("what is lost stays lost", instead("self.believed[peer] = up", "self.believed[peer] = [p for p in up if p in self.believed.get(peer, up)]"), "are up"),
    Mutant("answers, then forgets", instead("self.newest[peer] = number\n        self.believed[peer] = up", "self.newest[peer] = number\n        self.believed = {}"), "make of believed"),
)  # fmt: skip

CHEATS = (
    Mutant("telepathy", whole(f"UP = {{}}\n{START}        self.wake_ns = 1000000\n    def on_ports(self, now_ns, up, peers): UP['h0'] = up\n    def on_update(self, *_): return True\n    def on_answer(self, *_): pass\n    def on_time(self, now_ns):\n        self.believed = dict(UP); self.wake_ns = now_ns + 1000000\n"), "sent no update"),
    Mutant("believes one plane from the start", whole(f"{START}        self.believed = {{'h0': [0]}}\n{QUIET}"), "sent no update"),
    Mutant("floods", instead(TELL, TELL + " * 50"), "at most 64 updates"),
    Mutant("planes that there are not", instead("self.believed[peer] = up", "self.believed[peer] = [9]"), "must be a list of planes"),
    Mutant("tells strangers", instead(TELL, "self.send = [('h1', 0, 1)]"), "with one peer of"),
    Mutant("holds the clock", whole(f"{START}        self.wake_ns = 1\n{QUIET.replace('def on_time(self, *_): pass', 'def on_time(self, now_ns): self.wake_ns = now_ns')}"), "sent no update"),
)  # fmt: skip
