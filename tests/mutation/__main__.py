"""Mutation testing: change one place of the product at random, and see whether a test fails.

    python -m tests.mutation --out mutants.jsonl                 # 300 mutants of all rooms, seed 40
    python -m tests.mutation --room judging --count 100 --seed 8 # more of one room
    python -m tests.mutation --by-hand                           # those of C and JavaScript
    python -m tests.mutation --at endpoint/mrc/hint.py:17        # every mutant of one line

No maintained tool fits. mutmut 3.8 leaves out functions with a decorator, that is every property and every check of
this project, and code outside of functions. cosmic-ray 8.7 has one test command for all modules, and counts any
failure of that command and any time-out as a kill, even a module that cannot be imported. Neither draws a sample from
a seed. Here a mutant is killed only if pytest says that a test failed.

Tests run in a copy of the tracked files. The unchanged copy must pass first. A mutant that is recorded as killed in
the file of results is not run again. So a second call continues an interrupted one, and looks at survivors again
after tests were added.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from common.interrupts import sigterm_too
from tests.mutation.bench import Bench, Fate
from tests.mutation.by_hand import BY_HAND, TESTS, mutants_by_hand
from tests.mutation.mutants import Mutant
from tests.mutation.rooms import ROOMS

ROOT = Path(__file__).parents[2]
UNCHANGED_S_MAX = 1800.0
PATIENCE = 3  # times the unchanged tests take, until a mutant has timed out


def known(out: Path) -> dict[str, str]:
    """The last recorded fate of each mutant, by name."""
    lines = out.read_text().splitlines() if out.exists() else []
    return {record["mutant"]: record["fate"] for record in map(json.loads, lines)}


def judge(
    bench: Bench, name: str, sample: Sequence[Mutant], tests: Sequence[str], without: Sequence[str], out: Path
) -> Counter[str]:
    """Fates of mutants of one room, recorded one by one; raises SystemExit when the unchanged tests do not pass."""
    before = known(out)
    fates: Counter[str] = Counter()
    start = time.monotonic()
    if not all(before.get(mutant.name) == Fate.KILLED for mutant in sample):
        fate = bench.run(tests, without, UNCHANGED_S_MAX)
        if fate is not Fate.SURVIVED:
            sys.exit(f"the tests of {name} do not pass without a mutant ({fate}):\n{bench.log.read_text()[-4000:]}")
    limit_s = PATIENCE * (time.monotonic() - start) + 10
    for mutant in sample:
        if before.get(mutant.name) == Fate.KILLED:
            fates[Fate.KILLED] += 1
            continue
        fate = bench.judge(mutant, tests, without, limit_s)
        fates[fate] += 1
        with out.open("a") as file:
            file.write(json.dumps({"room": name, "mutant": mutant.name, "fate": fate}) + "\n")
        if fate is not Fate.KILLED:
            print(f"{fate}: {mutant.name}", flush=True)
    return fates


def asked(choices: argparse.Namespace, root: Path) -> Iterator[tuple[str, list[Mutant], Sequence[str], Sequence[str]]]:
    """The mutants that a command line asks for by room, with the tests that are to kill them, and those left out."""
    if choices.by_hand:
        yield from ((name, mutants_by_hand(name, root), TESTS[name], ()) for name in BY_HAND)
        return
    for name in choices.room or ROOMS:
        room = ROOMS[name]
        if choices.at:
            sample = [mutant for mutant in room.every(root) if f"{mutant.path}:{mutant.line}" in choices.at]
        else:
            sample = room.sample(root, room.count if choices.count is None else choices.count, choices.seed)
        if sample:
            yield name, sample, room.tests, room.without


@sigterm_too()
def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutation", description="Plant mutants and count those that tests kill."
    )
    parser.add_argument("--room", action="append", choices=list(ROOMS), help="only this room; may be given again")
    parser.add_argument("--count", type=int, help="mutants per room (default: 300 over all rooms)")
    parser.add_argument("--seed", type=int, default=40)
    parser.add_argument("--at", action="append", metavar="FILE:LINE", help="all mutants of this line, and no sample")
    parser.add_argument("--by-hand", action="store_true", help="the mutants of C and JavaScript instead")
    parser.add_argument("--out", type=Path, default=Path("mutants.jsonl"), help="file of results, one line per mutant")
    choices = parser.parse_args()
    print(f"seed {choices.seed}, results in {choices.out}", flush=True)
    table = []
    with tempfile.TemporaryDirectory(prefix="mrclab-mutants-") as place:
        bench = Bench(ROOT, Path(place))
        for name, sample, tests, without in asked(choices, bench.place):
            fates = judge(bench, name, sample, tests, without, choices.out)
            table.append((name, *(fates[fate] for fate in Fate)))
            print(f"{name}: {dict(fates)}", flush=True)
    print("\n| room | " + " | ".join(Fate) + " |\n|---|" + "---:|" * len(Fate))
    for row in table:
        print("| " + " | ".join(map(str, row)) + " |")


if __name__ == "__main__":
    main()
