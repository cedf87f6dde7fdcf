"""Runs a minute of a sweep by number of workers: processes of this machine, and a Dask cluster on loopback.

    python benchmarks/sweep.py [--seeds 24] [--scenario smoke]

The limit is one worker's rate times the number of workers; the ratio to one worker of the same kind is printed. Dask's
workers run without the profiler that samples their threads every 10 ms, and whose samples are not used here.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from cli.commands.run import chosen
from studies.sweeping.address import ClusterAddress
from studies.sweeping.cluster import Cluster
from studies.sweeping.engine import RunEngine
from studies.sweeping.pool import Pool
from studies.sweeping.store import RowStore
from studies.sweeping.subject import Subject, subject
from studies.sweeping.sweep import Sweep
from studies.sweeping.variant import variants

LIMIT_S = 60
BEST = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
}


def runs_a_minute(subjects: list[Subject], engine: RunEngine, folder: Path, seeds: int) -> float:
    """Of a sweep whose workers have started: each makes a run before the clock does."""
    with engine:
        with RowStore(folder / "warm") as store:
            Sweep(subjects, range(10_000, 10_000 + 2 * engine.workers), store).run(engine)
        with RowStore(folder / "timed") as store:
            sweep = Sweep(subjects, range(1, seeds + 1), store)
            began_s = time.monotonic()
            sweep.run(engine)
            return 60 * sweep.made / (time.monotonic() - began_s)


def dask(stack: ExitStack, workers: int, folder: Path) -> str:
    """A scheduler and workers of one thread each on loopback; the scheduler's address."""

    def start(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", f"distributed.cli.{words[0]}", *words[1:], "--host", "127.0.0.1"]
        environment = {**os.environ, **BEST}
        process = subprocess.Popen(
            command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        stack.callback(process.communicate, timeout=LIMIT_S)
        stack.callback(process.terminate)
        return process

    scheduler = start("dask_scheduler", "--port", "0", "--no-dashboard", "--no-show")
    assert scheduler.stderr is not None
    address = next(found[1] for line in scheduler.stderr if (found := re.search(r"Scheduler at:\s+(tcp://\S+)", line)))
    for _ in range(workers):
        words = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(folder)]
        start("dask_worker", address, *words)
    return address


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--scenario", default="smoke")
    arguments = parser.parse_args()
    others = ["--world", "simulated"]
    subjects = [subject(one, chosen, 1) for one in variants([arguments.scenario], ["mrc"], [], [], [], others)]
    processors = len(os.sched_getaffinity(0))
    sys.stdout.write(f"{arguments.scenario}, {arguments.seeds} runs, {processors} processors\n")
    for kind in ("processes", "dask"):
        alone = 0.0
        for workers in range(1, processors + 1):
            with tempfile.TemporaryDirectory(prefix="mrclab-bench-") as name, ExitStack() as stack:
                folder = Path(name)
                engine: RunEngine
                if kind == "dask":
                    engine = Cluster(ClusterAddress(dask(stack, workers, folder / "dask")), chosen, at_least=workers)
                else:
                    engine = Pool(workers, chosen, folder)
                rate = runs_a_minute(subjects, engine, folder, arguments.seeds)
            alone = alone or rate
            sys.stdout.write(f"{kind:10} {workers} workers  {rate:6.1f} runs a minute, {rate / alone:.2f} times one\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
