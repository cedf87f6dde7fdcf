"""`python -m tests.incidents`: go through many drawn incidents by programs, and count."""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from random import Random

from common.seeds import Purpose, derive
from common.terminal.standard_streams import write_out
from operations.incident.kind import LEVELS
from tests.incidents.survey import Surveyed, consistent, surveyed, table

WORLDS = ("simulated", "emulated")
SEED_BITS = 62
"""Of each incident: long numbers, so that one that is found in a file is no chance."""


def main(words: list[str] | None = None) -> int:
    """Print the counts. Exit status 1 when a fault was not shown, something leaked or an incident crashed."""
    parser = argparse.ArgumentParser(prog="python -m tests.incidents", description=__doc__)
    parser.add_argument("--count", type=int, default=20, metavar="N", help="incidents, over all levels alike (20)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="what the seeds are drawn from (1)")
    parser.add_argument("--level", type=int, choices=LEVELS, help="one level only")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="incidents at a time (1)")
    parser.add_argument("--world", choices=WORLDS, default=WORLDS[0], help="virtual time, or real links as root")
    given = parser.parse_args(words)
    if given.world == "emulated" and given.jobs > 1:
        parser.error("--jobs must be 1 on real links: there is one lab at a time")
    levels = [given.level] if given.level else list(LEVELS)
    rng = Random(derive(given.seed, Purpose.SURVEY))
    seeds = [rng.getrandbits(SEED_BITS) for _ in range(given.count)]
    rows: list[Surveyed] = []
    with ProcessPoolExecutor(given.jobs) as pool:
        drawn = [levels[n % len(levels)] for n in range(given.count)]
        for row in pool.map(surveyed, seeds, drawn, [given.world] * given.count):
            rows.append(row)
            word = "consistent" if consistent(row) else "amiss"
            write_out(f"level {row.level}, seed {row.seed}: {word}\n", sys.stderr)
    write_out("\n".join(table(rows)) + "\n")
    return 0 if all(map(consistent, rows)) else 1


if __name__ == "__main__":
    sys.exit(main())
