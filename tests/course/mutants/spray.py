"""Wrong solutions of lab 5, and attempts to pass without solving it."""

from tests.course.mutants.mutant import Mutant, instead, whole

CHOOSE = "return min(usable, key=lambda path: (self.flying[path], self.sent[path]))"

MUTANTS = (
    Mutant("random", instead(CHOOSE, "import random\n        return random.choice(usable)"), "slow path|chance"),
    Mutant("one path", instead(CHOOSE, "return 0 if 0 in usable else None"), "idle|plane without packets"),
    Mutant(
        "strict turns",
        instead(CHOOSE, "n = sum(self.sent) % len(self.sent)\n        return n if n in usable else None"),
        "slow path|idle",
    ),
    Mutant("least sent", instead(CHOOSE, "return min(usable, key=lambda path: self.sent[path])"), "slow path"),
    Mutant("first usable", instead(CHOOSE, "return usable[0]"), "never chosen"),
    Mutant("forgets losses", instead("def on_lost(self, path):\n        self.flying[path] -= 1", ""), "on_lost"),
    Mutant(
        "forgets acknowledgements",
        instead("marked):\n        self.flying[path] -= 1", "marked):\n        pass"),
        "slow path",
    ),
    Mutant("turns of the usable", instead(CHOOSE, "return usable[sum(self.sent) % len(usable)]"), "slow path|never"),
    Mutant(
        "ignores what may send",
        instead(CHOOSE, "return sum(self.sent) % len(self.sent)"),
        "must return one of the paths that may send now",
    ),
    Mutant("most under way", instead("return min(", "return max("), "never chosen|idle|plane"),
)  # fmt: skip

CHEATS = (
    Mutant(
        "reads the reference",
        whole("exec(open('tests/course/references/spray.py').read())\n"),
        "can't open files",
    ),
    Mutant(
        "reads the grader's memory",
        whole("import ctypes\nclass Spray:\n    pass\n"),
        "can't be imported",
    ),
    Mutant(
        "writes answers into the pipe",
        whole(
            'class Spray:\n    def __init__(self, paths):\n'
            '        open(3, "w").write(\'{"value": 1, "watched": {}, "passed": true}\\n\' * 9)\n'
        ),
        "tampered|can't open files|Bad file|must have|must return|ended by itself",
    ),
    Mutant(
        "ends the check with status 0",
        whole("import sys\nclass Spray:\n    def __init__(self, paths):\n        sys.exit(0)\n"),
        "can't be imported|SystemExit",
    ),
    Mutant("a constant", instead(CHOOSE, "return usable[0] if usable[0] < 2 else 0"), "must return|idle|plane|never"),
)  # fmt: skip
