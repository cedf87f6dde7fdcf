"""Wrong solutions of lab 6, and attempts to pass without solving it."""

from tests.course.mutants.mutant import Mutant, instead, whole

LEAVE = "if self.suspicion[path] >= 2:"
BACK = "if path in self.out and self.answers[path] >= self.needed[path]:"
NOTHING = (
    "    def on_acked(self, *_): pass\n    def on_lost(self, *_): pass\n    def on_probe_answered(self, *_): pass\n"
)

MUTANTS = (
    Mutant("leaves with the first loss", instead(LEAVE, "if True:"), "no reason to leave|stay away|wait for probes|without a reason"),
    Mutant("never leaves", instead(LEAVE, "if False:"), "second loss"),
    Mutant("never comes back", instead(BACK, "if False:"), "bring it back"),
    Mutant("never probes", instead("self.probes.add(path)", "pass"), "never probed"),
    Mutant("waits for twenty losses", instead(LEAVE, "if self.suspicion[path] >= 20:"), "second loss|wait for probes"),
    Mutant("waits for fifty losses", instead(LEAVE, "if self.suspicion[path] >= 50:"), "second loss|wait for probes"),
    Mutant("comes back by the clock", instead("self.probes.add(path)", "self.out = self.out - {path}"), "wait for probes"),
    Mutant("one answer will do", instead("NEEDED, NEEDED_MOST = 2, 8", "NEEDED, NEEDED_MOST = 1, 1"), "in a row|packets lost"),
    Mutant("leaves the whole plane", instead("self.out.add(path)", "self.out |= set(range(len(self.suspicion)))"), "leave only|carry|paths went out|wait for probes"),
    Mutant("forgets that arrivals count", instead("self.suspicion[path] = max(0.0, self.suspicion[path] - 0.25)", "pass"), "count in favour|without a reason"),
    Mutant("leaves another path", instead("self.out.add(path)", "self.out.add((path + 1) % len(self.suspicion))"), "second loss|wait for probes"),
    Mutant("numbers from one", instead("self.out.add(path)", "self.out.add(path + 1)"), "out must be|second loss|wait for probes|out of range"),
)  # fmt: skip

CHEATS = (
    Mutant("everything is out", whole(f"class Health:\n    def __init__(self, paths, rtt_ns):\n        self.out = set(range(len(paths))); self.probes = set()\n{NOTHING}"), "leave|lost"),
    Mutant("path 0 is always out", whole(f"class Health:\n    def __init__(self, paths, rtt_ns):\n        self.out = {{0}}; self.probes = set()\n{NOTHING}"), "second loss|never probed|bring it back|wait|when it died"),
    Mutant("a list that changes under the reader", whole(f"class L(list):\n    def __iter__(self): return iter([99])\nclass Health:\n    def __init__(self, paths, rtt_ns):\n        self.out = L([99]); self.probes = set()\n{NOTHING}"), "out must be"),
    Mutant("kills its parent", whole(f"class Health:\n    def __init__(self, paths, rtt_ns):\n        o = __builtins__['__import__'].__globals__['os']; o.kill(o.getppid(), 9)\n{NOTHING}"), "can't open files"),
    Mutant("keeps a processor busy", whole(f"class Health:\n    def __init__(self, paths, rtt_ns):\n        while True: pass\n{NOTHING}"), "no answer within"),
)  # fmt: skip
