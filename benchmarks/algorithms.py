"""The shipped algorithms against MRC: makes the table of docs/results.md, as far as its time goes.

    python benchmarks/algorithms.py --seeds 100               # everything: a day of one processor
    python benchmarks/algorithms.py --seeds 100 --minutes 30  # a piece of it; the next call goes on there
    python benchmarks/algorithms.py --seeds 100 --table       # no run, the table so far

Runs ten scenarios in virtual time at 100 and 400 Gb/s per port, with and without trimming, seed by seed, each algorithm
on the same seeds, and prints a Markdown table per rate and trimming: MRC's goodput in the reference phase and the
others' difference in percent of it, then the same for the share that is kept under faults. A star says that the 95 %
interval of the paired differences leaves zero out, which takes five seeds; brackets say how many runs were false. Short
phases leave the verdicts of `incast` and `nic-port` unknown; those are not counted.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from cli.commands.run import chosen
from cli.commands.seeds.contest import matches_of
from judging.verdict import WORDS
from studies.contest.algorithm import Algorithm, parse, variants
from studies.contest.result import MEASURES, Match
from studies.sweeping.pool import Pool
from studies.sweeping.store import RowStore
from studies.sweeping.subject import Subject, subject
from studies.sweeping.sweep import Sweep

ROOT = Path(__file__).parent.parent
ALGORITHMS = (
    "mrc,reps,oblivious,bitmap,mixed,round_robin,two_choices,mrc+congestion=rccc,mrc+congestion=dctcp,"
    "mrc+congestion=swift,mrc+loss=sleek"
)
SCENARIOS = "smoke,collision,incast,grey-link,link-flap,switch-reboot,nic-port,maintenance,cold-start,spray"
CONDITIONS = [(rate, trimming) for rate in (100, 400) for trimming in ("true", "false")]
REFERENCE = "mrc"


class TimeIsOverError(Exception):
    """The time is over; the rows so far are kept."""


def words_of(rate_gbps: int, trimming: str, time_factor: float) -> list[str]:
    """The words of `./lab run` that all runs of a condition share."""
    found = ["--world", "simulated", "--time", f"{time_factor:g}", "--payload", "counted"]
    return [*found, "--set", f"trimming.enabled={trimming}", "--rate", str(rate_gbps * 1000)]


def subjects_of(found: list[Algorithm], scenarios: list[str], words: list[str]) -> list[Subject]:
    """Each algorithm in each scenario."""
    return [subject(variant, chosen, 1) for row in variants(found, scenarios, "", words) for variant in row]


def table(matches: Sequence[Match], measure: str, names: list[str]) -> Iterator[str]:
    """A line per scenario that has the measure."""
    yield f"| scenario | {' | '.join(names)} |"
    yield f"|---|{'---|' * len(names)}"
    for match in matches:
        found = {one.algorithm: one for one in match.results(MEASURES[measure])}
        false = {
            name: sum(row.verdict == WORDS[False] for row in one.rows)
            for name, one in zip(match.algorithms, match.statements, strict=True)
        }
        if REFERENCE not in found or not found[REFERENCE].mean:
            continue
        mean = found[REFERENCE].mean
        cells = []
        for name in names:
            one = found.get(name)
            if one is None:
                cell = "–"
            elif name == REFERENCE:
                cell = f"{mean / 1e9:.4g} Gb/s" if measure == "goodput" else f"{mean:.1%}"
            else:
                gap = one.difference
                cell = "–" if gap is None else f"{gap.mean / mean:+.1%}{'*' if gap.clear else ''}"
            cells.append(cell + (f" ({false[name]})" if false[name] else ""))
        yield f"| {match.scenario} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithms", default=ALGORITHMS)
    parser.add_argument("--scenarios", default=SCENARIOS)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--time", type=float, default=0.25, help="shorten every phase (0.25)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long, with the table so far")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "algorithms")
    parser.add_argument("--table", action="store_true", help="no run: only the table of the rows so far")
    arguments = parser.parse_args()
    found, scenarios = parse(arguments.algorithms), arguments.scenarios.split(",")
    conditions = [subjects_of(found, scenarios, words_of(*one, arguments.time)) for one in CONDITIONS]
    end_s = time.monotonic() + 60 * arguments.minutes
    with RowStore(arguments.runs) as store:
        if not arguments.table:
            make(conditions, arguments, store, end_s)
        for (rate, trimming), subjects in zip(CONDITIONS, conditions, strict=True):
            sweep = Sweep(subjects, range(1, arguments.seeds + 1), store)
            matches = matches_of(sweep, found, REFERENCE)
            runs = [len(one.rows) for match in matches for one in match.statements]
            how = "with" if trimming == "true" else "without"
            print(f"\n### {rate} Gb/s, {how} trimming: {min(runs)} to {max(runs)} runs in each place")
            for measure in ("goodput", "goodput_kept"):
                print(f"\n{MEASURES[measure].title}\n", *table(matches, measure, [one.name for one in found]), sep="\n")


def make(conditions: list[list[Subject]], arguments: argparse.Namespace, store: RowStore, end_s: float) -> None:
    """One seed of all conditions after the other, until the time is over."""

    def tell() -> None:
        if time.monotonic() > end_s:
            raise TimeIsOverError

    try:
        with Pool(arguments.workers, chosen, arguments.runs) as engine:
            for seed in range(1, arguments.seeds + 1):
                for subjects in conditions:
                    Sweep(subjects, [seed], store).run(engine, tell)
                    print(f"seed {seed}: {subjects[0].variant.title}", file=sys.stderr)
    except TimeIsOverError:
        print("the time is over", file=sys.stderr)


if __name__ == "__main__":
    main()
