"""Mutation testing: change one place of the product at random, and see whether a test fails.

    python -m tests.mutation --out mutants.jsonl                 # 300 mutants of all rooms, seed 40
    python -m tests.mutation --room judging --count 100 --seed 8 # more of one room
    python -m tests.mutation --at endpoint/mrc/hint.py:17        # every mutant of one line

No maintained tool fits. mutmut 3.8 leaves out functions with a decorator, that is every property and every check of
this project, and code outside of functions. cosmic-ray 8.7 has one test command for all modules, and counts any
failure of that command and any time-out as a kill, even a module that cannot be imported. Neither draws a sample from
a seed. Here a mutant is killed only if pytest says that a test failed.

Tests run in a copy of the tracked files. The unchanged copy must pass first; that run measures which tests run which
lines. A mutant meets those tests first, the quickest before the others, and all tests of its room if they let it live.
A mutant that is recorded as killed in the file of results is not run again. So a second call continues an interrupted
one, and looks at survivors again after tests were added.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.interrupts import all_alike
from tests.mutation.bench import Bench, Fate
from tests.mutation.mutants import Mutant
from tests.mutation.rooms import ROOMS

ROOT = Path(__file__).parents[2]
UNCHANGED_S_MAX = 1800.0
PATIENCE = 4  # times the unchanged tests take, until a mutant has timed out
START_S_MAX = 60.0  # of pytest itself, on a busy machine


@dataclass(frozen=True)
class Batch:
    """Mutants of one room, the tests that are to kill them, and those left out."""

    sample: list[Mutant]
    tests: Sequence[str]
    without: Sequence[str]


def known(out: Path) -> dict[str, str]:
    """The last recorded fate of each mutant, by name."""
    lines = out.read_text().splitlines() if out.exists() else []
    return {record["mutant"]: record["fate"] for record in map(json.loads, lines)}


class Judge:
    """Judges mutants of one room. Every fate is recorded at once."""

    def __init__(self, bench: Bench, name: str, batch: Batch, out: Path, covering_only: bool) -> None:
        """SystemExit when the unchanged tests do not pass."""
        self.bench, self.name, self.batch, self.out, self.covering_only = bench, name, batch, out, covering_only
        start = time.monotonic()
        result = out.resolve().with_suffix(f".{name.replace(' ', '-')}")
        modules = [bench.place / mutant.path for mutant in batch.sample]
        found = bench.measure(modules, batch.tests, batch.without, result, UNCHANGED_S_MAX)
        if isinstance(found, Fate):
            sys.exit(f"the tests of {name} do not pass without a mutant ({found}):\n{bench.log.read_text()[-4000:]}")
        self.covering = found
        print(f"{name}: {len(found.seconds)} tests, measured in {time.monotonic() - start:.0f} s", flush=True)

    def fate(self, mutant: Mutant) -> Fate:
        """The covering tests come first; the whole room judges a mutant that they let live."""
        tests = self.covering.of(mutant, (self.bench.place / mutant.path).read_bytes())
        if tests:
            fate = self.bench.judge(mutant, tests, (), self.limit_s(tests))
            if fate is not Fate.SURVIVED or self.covering_only:
                return fate
        return self.bench.judge(mutant, self.batch.tests, self.batch.without, self.limit_s(self.covering.seconds))

    def limit_s(self, tests: Iterable[str]) -> float:
        """When a mutant has timed out."""
        return PATIENCE * sum(map(self.covering.seconds.__getitem__, tests)) + START_S_MAX

    def judge(self) -> Counter[str]:
        """The fates of the sample."""
        before = known(self.out)
        fates: Counter[str] = Counter()
        for mutant in self.batch.sample:
            fate = Fate(before.get(mutant.name, Fate.BROKEN))
            if not (fate is Fate.KILLED or (self.covering_only and mutant.name in before)):
                fate = self.fate(mutant)
                with self.out.open("a") as file:
                    file.write(json.dumps({"room": self.name, "mutant": mutant.name, "fate": fate}) + "\n")
                if fate is not Fate.KILLED:
                    print(f"{fate}: {mutant.name}", flush=True)
            fates[fate] += 1
        return fates


def asked(choices: argparse.Namespace, root: Path) -> Iterator[tuple[str, Batch]]:
    """The mutants that a command line asks for, by room."""
    for name in choices.room or ROOMS:
        room = ROOMS[name]
        if choices.at:
            sample = [mutant for mutant in room.every(root) if f"{mutant.path}:{mutant.line}" in choices.at]
        else:
            sample = room.sample(root, room.count if choices.count is None else choices.count, choices.seed)
        if sample:
            yield name, Batch(sample, room.tests, room.without)


@all_alike()
def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutation", description="Plant mutants and count those that tests kill."
    )
    parser.add_argument("--room", action="append", choices=list(ROOMS), help="only this room; may be given again")
    parser.add_argument("--count", type=int, help="mutants per room (default: 300 over all rooms)")
    parser.add_argument("--seed", type=int, default=40)
    parser.add_argument("--at", action="append", metavar="FILE:LINE", help="all mutants of this line, and no sample")
    parser.add_argument(
        "--covering-only", action="store_true", help="run only tests that run the mutated line, and no mutant twice"
    )
    parser.add_argument("--ring", choices=["0", "1"], default="1", help="tests of ring 0 alone, or of both (default)")
    parser.add_argument("--out", type=Path, default=Path("mutants.jsonl"), help="file of results, one line per mutant")
    choices = parser.parse_args()
    print(f"seed {choices.seed}, results in {choices.out}", flush=True)
    table = []
    with tempfile.TemporaryDirectory(prefix="mrclab-mutants-") as place:
        bench = Bench(ROOT, Path(place), ring=choices.ring)
        for name, batch in asked(choices, bench.place):
            fates = Judge(bench, name, batch, choices.out, choices.covering_only).judge()
            table.append((name, *(fates[fate] for fate in Fate)))
            print(f"{name}: {dict(fates)}", flush=True)
    print("\n| room | " + " | ".join(Fate) + " |\n|---|" + "---:|" * len(Fate))
    for row in table:
        print("| " + " | ".join(map(str, row)) + " |")


if __name__ == "__main__":
    main()
