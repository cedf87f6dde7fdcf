"""Random runs in parts on many seeds: `python -m tests.running.parallel.sampling --seeds 10-209`.

Each run's plan, workloads, transport, payload and faults are drawn (`drawn_spec`), every fourth on sixteen leaves. Its
journals and packet log in 2, 4, 8 and 16 parts, or as many as it has groups of hosts, must be those of one process,
byte for byte; the exit status is 1 where any is not. A line tells of each run, and the last counts them, also after
Ctrl-C. Parts are threads here; that processes of MPI do the same is what `test_processes.py` shows.
"""

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from running.parallel.world import host_groups
from tests.helpers.ranks_in_memory import differing, drawn_spec

COUNTS = (2, 4, 8, 16)
WIDE_EVERY, WIDE_LEAVES = 4, 16
RENEWED = 8
Trial = tuple[int, list[int], str, list[str]]
"""The seed, in how many parts its run was made, its transport, and the files that differ."""


def trial(seed: int) -> Trial:
    spec = drawn_spec(seed, WIDE_LEAVES if seed % WIDE_EVERY == 0 else None)
    counts = sorted({min(count, len(host_groups(spec.plan))) for count in COUNTS} - {1})
    with tempfile.TemporaryDirectory() as folder:
        return seed, counts, spec.choices.transport.agent, differing(spec, Path(folder), counts)


def trials(seeds: Sequence[int], workers: int) -> Iterator[Trial]:
    """All trials in the order of seeds. New processes for every few of them give memory back; Python 3.11's pool, told
    to renew its processes itself, stops for good when it should (python/cpython#115634)."""
    for first in range(0, len(seeds), RENEWED * workers):
        with ProcessPoolExecutor(workers) as pool:
            yield from pool.map(trial, seeds[first : first + RENEWED * workers])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="10-209", metavar="A-B")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    parts: Counter[int] = Counter()
    transports: Counter[str] = Counter()
    wrong = 0
    try:
        for seed, counts, agent, files in trials(seeds, options.workers):
            parts.update(counts)
            transports[agent] += 1
            wrong += bool(files)
            print(f"seed {seed}: {agent} in {counts} parts: {', '.join(files) or 'the same'}", flush=True)
    except KeyboardInterrupt:
        print("interrupted")
    told = ", ".join(f"{runs} in {count} parts" for count, runs in sorted(parts.items()))
    made = transports.total()
    print(f"{made} of {len(seeds)} random runs ({dict(transports)}), {told}: {wrong} differ")
    return 1 if wrong or made < len(seeds) else 0


if __name__ == "__main__":
    sys.exit(main())
