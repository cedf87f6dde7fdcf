"""Measures the error bars: exact runs of whole jobs beside answers from their parts, with other seeds.

    python -m benchmarks.scale_bars --rows rows.jsonl --seeds 1 20            # goes on where the file ends
    python -m benchmarks.scale_bars --rows rows.jsonl --seeds 1 20 --bars     # writes bars.toml from these rows
    python -m benchmarks.scale_bars --rows rows.jsonl --seeds 101 120 --check # are others within the bars?

Each row is one exact run and one answer from parts, of a job at one of the sizes below. Exits with 1 if a check fails.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from scale import ALL_REDUCE, ALL_TO_ALL, PHASE, RING, Answer, Cut, Job, answered, bar, done
from scenarios import TimedFault
from studies.farm import Pool
from topo import Plan, load_plan

OFFSET = 1_000_000
"""Between the seed of an exact run and that of the answer that is compared with it."""


@dataclass(frozen=True, slots=True)
class Size:
    """A fabric: leaves × hosts per leaf, as many spines per plane as hosts per leaf, and how thin its blocks are."""

    leaves: int
    per_leaf: int
    planes: int
    thin: int
    group: int

    @property
    def nics(self) -> int:
        """All NICs."""
        return self.leaves * self.per_leaf

    def plan(self) -> Plan:
        """As the paper's fabric, but smaller."""
        name = f"nics{self.nics}"
        plan = replace(load_plan("paper"), name=name, planes=self.planes, leaves=self.leaves)
        return replace(plan, spines=self.per_leaf, hosts_per_leaf=self.per_leaf)


SIZES = {64: Size(8, 8, 8, 1, 4), 256: Size(8, 32, 8, 1, 4), 1024: Size(16, 64, 8, 2, 8), 8192: Size(32, 256, 4, 4, 8)}
FAULTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    bar.UNDISTURBED: (),
    "link-down": (("link-down", "p0l1-p0s3"),),
    "switch-crash": (("switch-crash", "p1s2"),),
    "port-down": (("port-down", "h5.p1"),),
    "loss": (("loss", "p0l2-p0s1"),),
}
LOSS_PERCENT = 5.0
AT_S = 0.15
"""Into the job's second step or so."""


def job(kind: str, size: Size, message_bytes: int) -> Job:
    """The job that is measured at a size."""
    if kind == RING:
        return Job(RING, message_bytes, steps=4, rounds=min(4, size.per_leaf // 4))
    if kind == ALL_REDUCE:
        return Job(ALL_REDUCE, message_bytes * size.group, steps=2, group=size.group)
    return Job(ALL_TO_ALL, message_bytes, steps=3, group=size.group)


def cut(kind: str, fault: str, nics: int, message_bytes: int) -> Cut:
    """The job, its fabric and its faults."""
    size = SIZES[nics]
    faults = tuple(
        TimedFault(AT_S, verb, target, None, LOSS_PERCENT if verb == "loss" else None, phase=PHASE)
        for verb, target in FAULTS[fault]
    )
    return Cut(size.plan(), job(kind, size, message_bytes), faults, 1 if kind == RING else size.thin)


def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The fields that differ between any two rows."""
    return tuple(row[name] for name in ("job", "fault", "transport", "nics", "bytes", "seed"))


def read(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The rows that are there."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {key(row): row for row in map(json.loads, lines)}


def wanted(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The rows that are asked for, a seed of all before the next seed."""
    for seed in range(given.seeds[0], given.seeds[1] + 1):
        for nics in given.nics:
            for kind in given.job:
                for fault in given.fault:
                    for size in given.bytes:
                        yield {
                            "job": kind, "fault": fault, "transport": given.transport, "nics": nics, "bytes": size,
                            "seed": seed,
                        }  # fmt: skip


def measured(row: dict[str, Any], workers: int) -> dict[str, Any]:
    """The row with the exact run's answer and that of the parts."""
    made = cut(row["job"], row["fault"], row["nics"], row["bytes"])
    answers: dict[str, Answer] = {}
    for name, whole in (("exact", True), ("parts", False)):
        with Pool(workers, done) as engine:
            seed = row["seed"] + (0 if whole else OFFSET)
            answers[name] = answered(made, seed, engine, transport=row["transport"], whole=whole)
    return {**row, "thin": made.thin, **{name: asdict(answer) for name, answer in answers.items()}}


def differences(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """By metric, by how much the answers of rows are above the exact ones."""
    found = [bar.differences(Answer(**row["parts"]), Answer(**row["exact"])) for row in rows]
    return {name: [one[name] for one in found] for name in bar.METRICS}


def written(rows: Sequence[Mapping[str, Any]]) -> str:
    """The text of `bars.toml` from rows."""
    lines = ["# Made by `python -m benchmarks.scale_bars --bars`: differences from exact runs, as shares."]
    groups: dict[tuple[str, str, str, int], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["job"], row["fault"], row["transport"], row["nics"]].append(row)
    for (kind, fault, transport, nics), own in sorted(groups.items()):
        if len(own) < bar.LEAST:
            continue
        sizes = [row["bytes"] for row in own]
        thinned = [SIZES[row["nics"]].per_leaf // row["thin"] for row in own if row["thin"] > 1]
        lines += ["", "[[bar]]", f'job = "{kind}"', f'fault = "{fault}"', f'transport = "{transport}"']
        lines += [f"bytes = [{min(sizes)}, {max(sizes)}]", f"nics = {nics}", f"runs = {len(own)}"]
        lines += [f"part_hosts = {min(thinned, default=1)}", f"thin = {max(row['thin'] for row in own)}"]
        lines += [f"{name} = {bar.conformal(values):.4f}" for name, values in differences(own).items()]
    return "\n".join(lines) + "\n"


def checked(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, bool]]:
    """Of each kind of job, fault and size: a line with how many rows are within the bars, and whether 95 % are."""
    groups: dict[tuple[str, str, int, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["job"], row["fault"], row["nics"], row["transport"]].append(row)
    for (kind, fault, nics, transport), own in sorted(groups.items()):
        bars = [b for b in bar.bars() if (b.job, b.fault, b.transport, b.nics) == (kind, fault, transport, nics)]
        for name, values in differences(own).items():
            limit = getattr(bars[0], name) if bars else float("nan")
            within = sum(abs(value) <= limit for value in values)
            most = max(map(abs, values))
            yield (
                f"| {kind} | {fault} | {nics:,} | {name} | {within} of {len(values)} | {limit:.1%} | {most:.1%} |",
                within >= bar.CONFIDENCE * len(values),
            )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what is missing; writes or checks bars."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs=2, default=(1, 20), metavar=("FIRST", "LAST"))
    parser.add_argument("--nics", type=int, nargs="+", choices=SIZES, default=[64, 256, 1024])
    parser.add_argument("--job", nargs="+", choices=(RING, ALL_TO_ALL, ALL_REDUCE), default=[RING, ALL_TO_ALL])
    parser.add_argument("--fault", nargs="+", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--bytes", type=int, nargs="+", default=[65536])
    parser.add_argument("--transport", default="mrc")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--at-most", type=int, metavar="N", help="end after so many new rows")
    then = parser.add_mutually_exclusive_group()
    then.add_argument("--bars", action="store_true", help="write bars.toml from the rows of these seeds")
    then.add_argument("--check", action="store_true", help="print how many rows of these seeds are within the bars")
    given = parser.parse_args(arguments)
    known = read(given.rows)
    asked = list(wanted(given))
    if not (given.bars or given.check):
        for row in [row for row in asked if key(row) not in known][: given.at_most]:
            with given.rows.open("a") as file:
                file.write(json.dumps(measured(row, given.workers)) + "\n")
            print(*key(row), file=sys.stderr, flush=True)
        return 0
    rows = [known[key(row)] for row in asked if key(row) in known]
    if given.bars:
        bar.FILE.write_text(written(rows))
        return 0
    lines = list(checked(rows))
    print("| job | fault | NICs | metric | within | bar | largest difference |\n|---|---|---:|---|---:|---:|---:|")
    print("\n".join(line for line, _ in lines))
    return 0 if all(good for _, good in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
