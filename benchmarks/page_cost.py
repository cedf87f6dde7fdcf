"""What a viewer costs a run: `link-flap` on real links with and without a page open in a browser, by turns.

    sudo python benchmarks/page_cost.py [--pairs 3] [--short] [--rate MBPS] [--plan lab]

Peer: the same run without `--view`, by turns with those that are viewed. Goodput is that of phase `reference`. Shares
are of one core while the run goes on, until its tables are verified: `server` is the process that talks to the browser,
`runner` the process of `./lab run`, which answers the page's questions; the viewer's share is the server and what the
runner spends more than unwatched. The browser stands for another machine: its share is told, and counts for nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.rig.browser import MISSING, browser
from running.directory import find

ROOT = Path(__file__).parents[1]
LOOK_S = 0.5
GOODPUT_LOST_MAX, SHARE_MAX = 0.01, 0.10
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PHASE = "reference"


@dataclass(frozen=True, slots=True)
class Turn:
    """One run. Shares are of one core."""

    verdict: str
    goodput_bps: float
    server: float
    runner: float
    chromium: float


def spent_s(pid: int) -> float:
    """Processor time of a process without its children; 0 for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) * TICK_S


def below(pid: int) -> Iterator[int]:
    """All living descendants of a process."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return
    for child in children:
        yield child
        yield from below(child)


def named(pids: Iterator[int], word: bytes) -> list[int]:
    """Those with this word in their command lines."""
    found = []
    for pid in pids:
        try:
            if word in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


@contextmanager
def started(words: Sequence[str], folder: Path, viewed: bool) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The run, with the address of its page, or an empty one."""
    line = [sys.executable, "-m", "cli", "run", *words, "--plain", "--runs", str(folder)]
    line += ["--view"] if viewed else []
    with (folder / "said").open("w+") as said:
        process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=said)
        try:
            address = None if viewed else ""
            while address is None:
                found = re.search(r"view: (http://\S+)\n", (folder / "said").read_text())
                address = found[1] if found else None
                if process.poll() is not None:
                    sys.exit((folder / "said").read_text())
                time.sleep(LOOK_S / 5)
            yield process, address
        finally:
            process.terminate()
            process.wait()


def over(folder: Path) -> bool:
    """Whether the newest run has come to its end; what follows is judging."""
    try:
        return b'"kind":"tables"' in (folder / "latest" / "journal" / "runner.jsonl").read_bytes()
    except OSError:
        return False


def turn(words: Sequence[str], folder: Path, viewed: bool) -> Turn:
    """One run from beginning to end, followed by a browser if it is viewed."""
    (folder / "latest").unlink(missing_ok=True)
    with started(words, folder, viewed) as (process, address), ExitStack() as stack:
        if viewed:
            stack.enter_context(browser())().open(address)  # draws by itself from now on
        begun_s = time.monotonic()
        groups = {
            "server": named(below(process.pid), b"page.server"),
            "runner": [process.pid],
            "chromium": named(below(os.getpid()), b"chromium") if viewed else [],
        }
        before = {name: sum(map(spent_s, pids)) for name, pids in groups.items()}
        spent = dict(before)
        while process.poll() is None and not over(folder):
            time.sleep(LOOK_S)
            spent = {name: max(spent[name], sum(map(spent_s, pids))) for name, pids in groups.items()}
        took_s = time.monotonic() - begun_s
        process.wait()
    shares = {name: (spent[name] - before[name]) / took_s for name in groups}
    told = json.loads((find(folder, "latest") / "verdict.json").read_text())
    goodput = [row["goodput_bps"] for row in told["figures"]["phases"] if row["phase"] == PHASE]
    return Turn(told["verdict"], goodput[0] if goodput else 0.0, **shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--short", action="store_true", help="the shortest phases that still give a verdict")
    parser.add_argument("--rate", help="Mb/s of a port; without it the calibrated rate, measured by the first run")
    parser.add_argument("--plan", default="lab")
    arguments = parser.parse_args()
    if MISSING:
        sys.exit(MISSING)
    if os.geteuid() != 0:
        sys.exit("needs root: runs link-flap on real links")
    words = ["link-flap", "--plan", arguments.plan, "--seed", "7"]
    words += ["--short"] if arguments.short else []
    words += ["--rate", arguments.rate] if arguments.rate else []
    print("run      verdict   goodput       server    runner  chromium")
    turns: dict[bool, list[Turn]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)  # the page's server reads as an ordinary user
        for _ in range(arguments.pairs):
            for viewed in (False, True):
                one = turn(words, Path(name), viewed)
                turns[viewed].append(one)
                print(
                    f"{'viewed' if viewed else 'alone':8} {one.verdict:8} {one.goodput_bps / 1e6:7.2f} Mb/s"
                    f" {one.server:9.1%} {one.runner:9.1%} {one.chromium:9.1%}",
                    flush=True,
                )
    alone, viewed_ones = turns[False], turns[True]
    ratio = statistics.median(one.goodput_bps for one in viewed_ones) / statistics.median(
        one.goodput_bps for one in alone
    )
    runner = statistics.median(one.runner for one in viewed_ones) - statistics.median(one.runner for one in alone)
    share = statistics.median(one.server for one in viewed_ones) + max(0.0, runner)
    print(f"goodput viewed / alone: {ratio:.4f} (at least {1 - GOODPUT_LOST_MAX:.2f} is wanted)")
    print(f"the viewer's share of a core: {share:.1%} (at most {SHARE_MAX:.0%} is wanted)")


if __name__ == "__main__":
    main()
