"""Time and memory to read workload files of a given size: `python -m benchmarks.workload_files [--megabytes 100]`.

A file per row, written for the purpose: connections that all begin at once, connections with start times, and a ring of
sends, receives and dependencies in GOAL. A separate process reads each file, and its memory is the most that this
process had, beside what it has with the reader imported and nothing read.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from schedules import read

RANKS = 1024
BYTES = 20_000


def connections(count: int, apart_ps: int) -> Iterator[str]:
    """A matrix whose connections begin `apart_ps` picoseconds one after the other."""
    yield f"Nodes {RANKS}\nConnections {count}\n"
    for number in range(count):
        source, distance = number % RANKS, 1 + number // RANKS % (RANKS - 1)
        target = (source + distance) % RANKS
        yield f"{source}->{target} id {number + 1} start {number * apart_ps} size {BYTES}\n"


def ring(count: int) -> Iterator[str]:
    """A GOAL program with so many sends: each waits for the receive before it."""
    yield f"num_ranks {RANKS}\n"
    for rank in range(RANKS):
        yield f"rank {rank} {{\n"
        for step in range(count // RANKS):
            yield f"s{step}: send {BYTES}b to {(rank + 1) % RANKS} tag {step}\n"
            yield f"r{step}: recv {BYTES}b from {(rank - 1) % RANKS} tag {step}\n"
            if step:
                yield f"s{step} requires r{step - 1}\n"
        yield "}\n"


FILES: dict[str, tuple[str, Callable[[int], Iterator[str]]]] = {
    "connections at once": (".cm", lambda count: connections(count, 0)),
    "connections with starts": (".cm", lambda count: connections(count, 1000)),
    "GOAL ring": (".goal", ring),
}


def write(path: Path, lines: Callable[[int], Iterator[str]], size: int) -> None:
    """A file of about `size` bytes."""
    tried = 64 * RANKS
    count = tried * size // sum(map(len, lines(tried)))
    with path.open("w") as file:
        file.writelines(lines(count))


def row(path: Path) -> dict[str, float]:
    """What reading one file takes."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    schedule = read(path)
    seconds = time.process_time() - started
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "operations": len(schedule.kind),
        "seconds": seconds,
        "megabytes": kilobytes * 1024 / 1e6,
        "each": (kilobytes - before) * 1024 / len(schedule.kind),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--row", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row is not None:
        print(json.dumps(row(arguments.row)))
        return
    print(f"{'file':26}{'file MB':>9}{'operations':>12}{'CPU s':>8}{'memory MB':>11}{'bytes per operation':>21}")
    with tempfile.TemporaryDirectory() as folder:
        for name, (suffix, lines) in FILES.items():
            path = Path(folder) / f"file{suffix}"
            write(path, lines, arguments.megabytes * 1_000_000)
            words = [sys.executable, __file__, "--row", str(path)]
            found = json.loads(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout)
            print(
                f"{name:26}{path.stat().st_size / 1e6:9.0f}{found['operations']:12,}{found['seconds']:8.1f}"
                f"{found['megabytes']:11.0f}{found['each']:21.0f}",
                flush=True,
            )
            path.unlink()


if __name__ == "__main__":
    main()
