"""The shipped algorithms against MRC: makes the table of docs/results.md, as far as its time goes.

    python benchmarks/algorithms.py --seeds 100               # everything: a day of one processor
    python benchmarks/algorithms.py --seeds 100 --minutes 30  # a piece of it; the next call goes on there
    python benchmarks/algorithms.py --seeds 100 --table       # no run, the table so far
    python benchmarks/algorithms.py --csv docs/algorithms.csv.gz --table  # the tables of the page, from its runs
    python benchmarks/algorithms.py --csv docs/algorithms.csv.gz --again 2  # more runs, which go into that file

Runs ten scenarios in virtual time at 100 and 400 Gb/s per port, with and without trimming, seed by seed, each algorithm
on the same seeds, and prints a Markdown table per rate and trimming: MRC's goodput in the reference phase and the
others' difference in percent of it, then the same for the share that is kept under faults. A star says that the 95 %
interval of the paired differences leaves zero out, which takes five seeds; brackets say how many runs were false. Short
phases leave the verdicts of `incast` and `nic-port` unknown; those are not counted.

Runs of the file that were made by other code, or with another plan, count once a sample of them is the same with this
code: `--again 2` makes the first two seeds again, and ends with an error at the first run that differs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.rig.run_table import Place, RunTable, same
from cli import huge_pages
from cli.commands.run import chosen
from cli.commands.seeds.contest import matches_of
from judging.verdict import WORDS
from studies.contest.algorithm import Algorithm, parse, variants
from studies.contest.result import MEASURES, Match
from studies.sweeping.pool import Pool
from studies.sweeping.row import Row
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
TITLES = {
    "mrc": "MRC",
    "reps": "REPS",
    "round_robin": "round robin",
    "two_choices": "two choices",
    "mrc+congestion=rccc": "RCCC",
    "mrc+congestion=dctcp": "DCTCP",
    "mrc+congestion=swift": "Swift",
    "mrc+loss=sleek": "SLEEK",
}
COLUMNS = ("rate_gbps", "trimming", "time", "scenario", "algorithm")


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
    yield f"|scenario|{'|'.join(TITLES.get(name, name) for name in names)}|"
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
                cell = f"{rate(mean)} Gb/s" if measure == "goodput" else f"{mean:.1%}"
            else:
                gap = one.difference
                cell = "–" if gap is None else f"{gap.mean / mean:+.1%}{'*' if gap.clear else ''}"
            cells.append(cell + (f" ({false[name]})" if false[name] else ""))
        yield f"|{match.scenario}|{'|'.join(cells)}|"


def rate(bps: float) -> str:
    """Gb/s with four digits at least."""
    return f"{bps / 1e9:.4g}" if bps < 1e12 else f"{bps / 1e9:,.0f}"


def tables(conditions: list[list[Subject]], seeds: Sequence[int], store: RowStore, found: list[Algorithm]) -> str:
    """All tables of the rows so far, with a heading for each condition."""
    lines = []
    for (rate_gbps, trimming), subjects in zip(CONDITIONS, conditions, strict=True):
        matches = matches_of(Sweep(subjects, seeds, store), found, REFERENCE)
        runs = [len(one.rows) for match in matches for one in match.statements]
        condition = f"{rate_gbps} Gb/s, {'with' if trimming == 'true' else 'without'} trimming"
        lines += ["", f"### {condition}: {min(runs)} to {max(runs)} runs in each place"]
        for measure in ("goodput", "goodput_kept"):
            title = f"{condition}, {MEASURES[measure].title}:"
            lines += ["", title, "", *table(matches, measure, [one.name for one in found])]
    return "\n".join(lines)


def run_table(conditions: list[list[Subject]], found: list[Algorithm], scenarios: list[str], factor: float) -> RunTable:
    """The table of runs, with the place of each subject in it."""
    names = [(scenario, one.name) for scenario in scenarios for one in found]
    places: dict[Place, Subject] = {
        (str(rate_gbps), trimming, f"{factor:g}", *name): subject
        for (rate_gbps, trimming), subjects in zip(CONDITIONS, conditions, strict=True)
        for name, subject in zip(names, subjects, strict=True)
    }
    return RunTable(COLUMNS, places)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithms", default=ALGORITHMS)
    parser.add_argument("--scenarios", default=SCENARIOS)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--time", type=float, default=0.25, help="shorten every phase (0.25)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long, with the table so far")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "algorithms")
    parser.add_argument("--csv", type=Path, help="a .csv.gz file of runs: they count, and new ones are written to it")
    parser.add_argument("--again", type=int, default=0, metavar="N", help="make N seeds of other code's runs again (0)")
    parser.add_argument("--table", action="store_true", help="no run: only the table of the rows so far")
    arguments = parser.parse_args()
    found, scenarios = parse(arguments.algorithms), arguments.scenarios.split(",")
    conditions = [subjects_of(found, scenarios, words_of(*one, arguments.time)) for one in CONDITIONS]
    kept = run_table(conditions, found, scenarios, arguments.time)
    seeds = range(1, arguments.seeds + 1)
    written = {*seeds}
    with ExitStack() as stack:
        temporary = arguments.table and arguments.csv
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) if temporary else arguments.runs
        store = stack.enter_context(RowStore(folder))
        if arguments.csv and (arguments.table or arguments.csv.exists()):
            own, others = kept.read(arguments.csv)
            if not arguments.table and (lost := kept.strangers(arguments.csv)):
                parser.error(f"--csv: {arguments.csv} has runs that this call would lose, such as {'/'.join(lost[0])}")
            written |= {row.seed for row in [*own, *others]}
            store.add(*own)
            if others and arguments.table:
                print(f"{len(others)} of these runs were made by other code or with other plans", file=sys.stderr)
            elif others and (why := differs(others, conditions, arguments, store)):
                parser.error(f"--csv: runs of {arguments.csv} were made by other code or with other plans{why}")
            store.add(*others)
        if not arguments.table:
            make(conditions, seeds, arguments, store)
            if arguments.csv:
                kept.write(arguments.csv, store, sorted(written))
        print(tables(conditions, seeds, store, found))


def differs(
    others: Sequence[Row], conditions: list[list[Subject]], arguments: argparse.Namespace, store: RowStore
) -> str:
    """Why runs of other code do not count as runs of this one; "" if a sample that is made again is the same."""
    if arguments.again < 1:
        return ": --again N makes N seeds again, to see whether they are the same"
    seeds = sorted({row.seed for row in others})[: arguments.again]
    make(conditions, seeds, arguments, store)
    sample = [row for row in others if row.seed in seeds]
    again = store.find(row.key for row in sample)
    if len(again) < len(sample):
        return f", and only {len(again)} of {len(sample)} have been made again so far"
    for row in sample:
        if not same(row, again[row.key]):
            return f", and are not the same with this code: seed {row.seed}, {row} was made again as {again[row.key]}"
    print(f"{len(sample)} runs made again are the same in all numbers", file=sys.stderr)
    return ""


def make(conditions: list[list[Subject]], seeds: Sequence[int], arguments: argparse.Namespace, store: RowStore) -> None:
    """One seed of all conditions after the other, until the time is over."""
    end_s = time.monotonic() + 60 * arguments.minutes

    def tell() -> None:
        if time.monotonic() > end_s:
            raise TimeIsOverError

    try:
        with Pool(arguments.workers, chosen, arguments.runs) as engine:
            for seed in seeds:
                for subjects in conditions:
                    Sweep(subjects, [seed], store).run(engine, tell)
                print(f"seed {seed} is made", file=sys.stderr)
    except TimeIsOverError:
        print("the time is over", file=sys.stderr)


if __name__ == "__main__":
    huge_pages.start_with_them()
    main()
