"""Reference of lab 6: losses count against a path, arrivals for it; out until probes in a row come back."""

NEEDED, NEEDED_MOST = 2, 8


class Health:
    def __init__(self, paths, rtt_ns):
        self.rtt_ns = rtt_ns
        self.out = set()
        self.probes = set()
        self.suspicion = [0.0] * len(paths)
        self.answers = [0] * len(paths)
        self.needed = [NEEDED] * len(paths)
        self.probed_ns = [0] * len(paths)
        self.answered = [True] * len(paths)

    def on_acked(self, now_ns, path):
        self.probes = set()
        self.suspicion[path] = max(0.0, self.suspicion[path] - 0.25)
        self.probe(now_ns)

    def on_lost(self, now_ns, path):
        self.probes = set()
        if path not in self.out:
            self.suspicion[path] += 1
            if self.suspicion[path] >= 2:
                self.out.add(path)
                self.answers[path] = 0
                self.probed_ns[path] = now_ns
                self.answered[path] = True
        self.probe(now_ns)

    def on_probe_answered(self, now_ns, path):
        self.probes = set()
        self.answered[path] = True
        self.answers[path] += 1
        if path in self.out and self.answers[path] >= self.needed[path]:
            self.out.discard(path)
            self.suspicion[path] = 1.0
            self.needed[path] = min(NEEDED_MOST, self.needed[path] * 2)
        self.probe(now_ns)

    def on_time(self, now_ns):
        self.probes = set()
        self.probe(now_ns)

    def probe(self, now_ns):
        for path in self.out:
            if now_ns - self.probed_ns[path] >= 1.5 * self.rtt_ns:
                if not self.answered[path]:
                    self.answers[path] = 0
                self.probed_ns[path] = now_ns
                self.answered[path] = False
                self.probes.add(path)
