"""What the evidence of lateness costs: the processor time of whole runs on real links with and without, by turns.

    python benchmarks/evidence.py [--pairs 6] [--scenario smoke] [--rate 10]

Runs come from two copies of these sources. In one of them the hiccup meter is not started, agents do not look how late
their turns are, and switches do not note how late frames leave. The order turns from pair to pair. A run's processor
time is that of all its processes, agents, switches and the meter among them, from the first import to the last word, as
the scheduler counts their time, in nanoseconds: the machine's own count is made of ticks, and a thread that wakes every
ten milliseconds, like the meter's, runs in step with them. Printed are both means, and the mean difference of the pairs
with its standard error. Needs root, no lab running, and a machine without other work.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from statistics import mean, stdev
from typing import IO

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.rig import kept  # noqa: E402

PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
LEFT_OUT = shutil.ignore_patterns(".*", "runs", "__pycache__")

EVIDENCE = {
    "running/machine/processor.py": ('HiccupMeter(directory.journal("meter")), ',),
    "endpoint/packet_sockets/driver.py": (
        """            before_cpu_ns, cpu_ns = cpu_ns, time.thread_time_ns()
            late_ns = now_ns - max(deadline_ns, before_ns) if deadline_ns is not None else 0
            if slept and now_ns - before_ns >= self._stall_ns:  # in less time no frame can have waited for a stall
                late_ns = max(late_ns, min(self._waited_ns(), now_ns - before_ns))
            # The turn's own work is no lateness: with full ports a turn is always behind its deadline.
            late_ns = min(late_ns, now_ns - before_ns - (cpu_ns - before_cpu_ns))
            if late_ns > self._moderation_ns:
                self._was_late(device, late_ns, now_ns)
""",
    ),
    "switch/native/runtime/driver/driver.c": (
        "    u64 sent_ns = now_ns - DUE_SLACK_NS;\n",
        "        if (item.t_ns < sent_ns)\n            lateness_note(&d->late, item.t_ns, sent_ns);\n",
    ),
}
"""The text that gathers evidence, by file. Each piece occurs once and can be taken out."""


def copy(folder: Path, *, evidence: bool) -> None:
    """The sources in `folder`; without `evidence`, all that gathers it is taken out. Raises ValueError where the
    sources have changed, so that a piece is not found."""
    shutil.copytree(ROOT, folder, ignore=LEFT_OUT)
    for name, pieces in {} if evidence else EVIDENCE.items():
        text = (folder / name).read_text()
        for piece in pieces:
            if text.count(piece) != 1:
                raise ValueError(f"{name} has {text.count(piece)} times, not once: {piece.strip()!r}")
            text = text.replace(piece, "")
        (folder / name).write_text(text)


def adopt_orphans() -> None:
    """Make this process the parent of its descendants whose parents have ended, so that their time also counts here."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def children_s() -> float:
    """Processor seconds of all descendants that have ended, after the last of those that still run (getrusage(2))."""
    with suppress(ChildProcessError):
        while True:
            os.wait()
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def call(folder: Path, *words: str, output: IO[str] | None = None) -> int:
    """The exit status of `python -m cli WORDS` from the sources in `folder`; its output goes to `output`."""
    command = [sys.executable, "-m", "cli", *words]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.call(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)


def run(folder: Path, scenario: str, rate: float, seed: int) -> float:
    """The processor seconds of one run. Raises RuntimeError when the run has no verdict."""
    words = ["run", scenario, "--seed", str(seed), "--rate", str(rate), "--plain"]
    with (folder / "output").open("w+") as output:
        before_s = children_s()
        status = call(folder, *words, output=output)
        spent_s = children_s() - before_s
        if status not in kept.JUDGED:  # without evidence a verdict may be another one
            output.seek(0)
            raise RuntimeError(f"{scenario} ended with {status}: {output.read()[-400:]}")
    return spent_s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=6, help="of runs, one with and one without evidence (6)")
    parser.add_argument("--scenario", default="smoke", help="one that ends by itself on real links (smoke)")
    parser.add_argument("--rate", type=float, default=10.0, help="of a NIC port in Mb/s, the same in all runs (10)")
    options = parser.parse_args()
    if os.geteuid():
        raise SystemExit("evidence: needs root to make network namespaces")
    if options.pairs < 2:
        raise SystemExit(f"evidence: --pairs {options.pairs}: at least 2, or no difference has an error")
    adopt_orphans()
    with tempfile.TemporaryDirectory() as scratch:
        folders = {True: Path(scratch) / "with", False: Path(scratch) / "without"}
        for evidence, folder in folders.items():
            copy(folder, evidence=evidence)
            if call(folder, "compile"):  # the endpoint: a build of other sources is not used
                raise SystemExit("evidence: the endpoint cannot be compiled, see above")
            run(folder, options.scenario, options.rate, 0)  # which compiles the switches' programs
        spent: dict[bool, list[float]] = {True: [], False: []}
        for pair in range(options.pairs):
            for evidence in (True, False) if pair % 2 else (False, True):
                spent[evidence].append(run(folders[evidence], options.scenario, options.rate, pair + 1))
            print(f"pair {pair + 1}: {spent[True][-1]:.2f} s with, {spent[False][-1]:.2f} s without", flush=True)
    more = [a - b for a, b in zip(spent[True], spent[False], strict=True)]
    error = stdev(more) / len(more) ** 0.5
    without = mean(spent[False])
    print(f"processor time of {options.scenario}: {mean(spent[True]):.2f} s with evidence, {without:.2f} s without")
    print(f"difference {mean(more):+.2f} s, standard error {error:.2f} s: {mean(more) / without:+.1%} of a run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
