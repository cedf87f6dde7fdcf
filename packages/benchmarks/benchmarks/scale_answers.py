"""Answers for jobs of up to 131,072 NICs and their costs: rows of a CSV file, and pictures of them.

    python -m benchmarks.scale_answers docs/results/scale-answers.csv                            # makes missing rows
    python -m benchmarks.scale_answers docs/results/scale-answers.csv --pictures docs/pictures   # draws them

Each row is one `./lab scale` of one step with its processor time and the memory of its largest process. Three charts:
growth from 1,024 to 131,072 NICs, faults at 131,072, and how long a link is down.
"""

import argparse
import csv
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from judging.reports import plots
from topo import load_plan

SIZES = ((32, 32), (128, 64), (256, 128), (512, 256))
"""Leaves, and hosts per leaf and spines per plane: 1,024 to 131,072 NICs."""
RING = "ring of all NICs"
JOBS = {
    "all-to-all in groups of 8": "all-to-all",
    RING: "ring --rounds 8",
    "all-reduce in groups of 8": "all-reduce --bytes 524288",
}
FLAP = "link-down p0l3-p0s5 @0.02 for 0.1"
"""The time of a fault is in seconds of the lab: 0.1 s are 10 µs on the plan `paper` (`Plan.pace`)."""
SECOND_US = 100.0
FAULTS: dict[str, tuple[str, ...]] = {
    "none": (),
    "a link flaps": (FLAP,),
    "a port of a NIC": ("port-down h1000.p2 @0.02",),
    "four T1 switches": tuple(f"switch-crash p{plane}s{40 * plane} @0.02" for plane in range(4)),
    "a whole plane": tuple(f"switch-crash p0s{spine} @0.02" for spine in range(256)),
}
DOWN_S = (0.03, 0.1, 0.3, 20.0)
"""How long a link is down: 3 µs to 2 ms, when the step has long ended."""


@dataclass(frozen=True, slots=True)
class Row:
    """One answer: the case, the step times in µs, and what the answer cost."""

    chart: str
    case: str
    job: str
    nics: int
    median_us: float
    p99_us: float
    slowest_us: float
    packets: int
    resent: int
    exact_nics: int
    processor_s: float
    memory_mb: int
    command: str


@dataclass(frozen=True, slots=True)
class Case:
    """A row to be made: `hosts` per leaf, and the words of `./lab scale` behind the plan's."""

    chart: str
    case: str
    job: str
    leaves: int
    hosts: int
    faults: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """The command's words, without the plan."""
        told = [word for fault in self.faults for word in ("--fault", fault)]
        return [*JOBS[self.job].split(), "--steps", "1", "--samples", "1", *told, "--without-bar"]

    @property
    def command(self) -> str:
        """For people. The plans of the chart of growth are the benchmark's own."""
        return f"./lab scale {shlex.join(self.words)}"


def cases() -> Iterator[Case]:
    """All rows, cheap ones first."""
    for leaves, hosts in SIZES:
        for job in list(JOBS)[:2]:
            yield Case("growth", f"{leaves * hosts:,} NICs", job, leaves, hosts, (FLAP,))
    first = next(iter(JOBS))
    for name, faults in FAULTS.items():
        yield Case("faults", name, first, 512, 256, faults)
    for down_s in DOWN_S:
        yield Case("repair", f"{down_s * SECOND_US:.3g}", first, 512, 256, (f"link-down p0l3-p0s5 @0.02 for {down_s}",))
    yield from (Case("faults", name, RING, 512, 256, FAULTS[name]) for name in ("none", "a port of a NIC"))
    yield Case("faults", "none", list(JOBS)[2], 512, 256, ())


def made(case: Case, folder: Path) -> Row:
    """Run the command of a case in another process, and read what it said and took."""
    paper, plan = load_plan("paper"), "paper"
    if (case.leaves, case.hosts) != (paper.leaves, paper.hosts_per_leaf):
        file = folder / f"nics{case.leaves * case.hosts}.toml"
        sizes = {"planes": paper.planes, "leaves": case.leaves, "spines": case.hosts, "hosts_per_leaf": case.hosts}
        fabric = "".join(f"{key} = {value}\n" for key, value in sizes.items())
        rates = "".join(f"{key} = {value}\n" for key, value in asdict(paper.links).items())
        file.write_text(f'name = "{file.stem}"\n\n[fabric]\n{fabric}\n[links]\n{rates}')
        plan = str(file)
    words = ["scale", *case.words, "--plan", plan, "--workers", "1", "--json"]
    with subprocess.Popen([sys.executable, "-P", "-m", "cli", *words], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        text = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{shlex.join(words)} ended with {process.returncode}")
    told: dict[str, Any] = json.loads(text)
    answer = told["answer"]
    return Row(
        chart=case.chart,
        case=case.case,
        job=case.job,
        nics=answer["nics"],
        median_us=round(answer["median_ns"] / 1000, 2),
        p99_us=round(answer["p99_ns"] / 1000, 2),
        slowest_us=round(answer["slowest_ns"] / 1000, 2),
        packets=round(answer["packets"]),
        resent=round(answer["resent"]),
        exact_nics=answer["exact_nics"],
        processor_s=round(used.ru_utime + used.ru_stime, 1),
        memory_mb=used.ru_maxrss // 1000,
        command=case.command,
    )


def read(path: Path) -> list[Row]:
    """The rows that are there."""
    if not path.exists():
        return []
    kinds: dict[str, Any] = {"int": int, "float": float, "str": str}
    with path.open(newline="") as file:
        rows = [
            {
                field.name: kinds[getattr(field.type, "__name__", str(field.type))](row[field.name])
                for field in fields(Row)
            }
            for row in csv.DictReader(file)
        ]
    return [Row(**row) for row in rows]


def growth(rows: Sequence[Row]) -> str:
    """Processor time and memory by size, one curve per job."""
    drawing, (left, right) = plots.figure(3.2, 2)
    for axes, field, title in (
        (left, "processor_s", "processor time, s"),
        (right, "memory_mb", "memory of the largest process, MB"),
    ):
        for colour, job in zip(plots.RUNS, dict.fromkeys(row.job for row in rows), strict=False):
            own = sorted((row.nics, getattr(row, field)) for row in rows if row.job == job)
            axes.plot(*zip(*own, strict=True), "o-", color=colour, label=job)
        axes.set_xscale("log", base=2)
        axes.set_xticks(sorted({row.nics for row in rows}), [f"{nics:,}" for nics in sorted({r.nics for r in rows})])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("NICs")
        axes.set_title(title, fontsize=11)
    left.legend()
    return plots.svg(drawing, "Cost of an answer from 1,024 to 131,072 NICs")


def faults(rows: Sequence[Row]) -> str:
    """Median, 99th percentile and slowest step per fault."""
    drawing, axes = plots.figure(0.9 + 0.5 * len(rows))
    for place, row in enumerate(reversed(rows)):
        axes.plot((row.median_us, row.slowest_us), (place, place), color=plots.FAINT, linewidth=2, zorder=1)
        for colour, name in zip(plots.RUNS, ("median", "p99", "slowest"), strict=False):
            told = {"p99": "99th percentile"}.get(name, name) if not place else None
            axes.scatter(getattr(row, f"{name}_us"), place, color=colour, label=told, zorder=2)
    axes.set_yticks(range(len(rows)), [f"{row.case} ({row.job.split()[0]})" for row in reversed(rows)])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlim(left=0)
    axes.set_xlabel("step time of 131,072 NICs, µs")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return plots.svg(drawing, "Step times of 131,072 NICs by fault")


def repair(rows: Sequence[Row]) -> str:
    """The slowest step by how long a link is down, beside one that waits for the repair."""
    drawing, axes = plots.figure(3.6)
    points = sorted((float(row.case), row.slowest_us, row.p99_us) for row in rows)
    down, slowest, p99 = zip(*points, strict=True)
    published = (10_000.0, 100_000.0, 300_000.0)
    axes.plot(down, slowest, "o-", color=plots.RUNS[0], label="MRC, slowest step")
    axes.plot(down, p99, "o-", color=plots.RUNS[2], label="MRC, 99th percentile")
    axes.plot(
        (down[-1], published[-1]), (slowest[-1],) * 2, ":", color=plots.RUNS[0], label="MRC after its path is left"
    )
    waits = (*down, *published)
    axes.plot(
        waits, waits, "--", color=plots.RUNS[1], label="one path until the repair: at least as long (not simulated)"
    )
    axes.scatter(published, published, color=plots.RUNS[1])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("a link is down for, µs (dots on the dashed line: 10, 100 and 300 ms)")
    axes.set_ylabel("step time, µs")
    axes.legend()
    return plots.svg(drawing, "Step time by the time to a repair")


PICTURES = {"growth": growth, "faults": faults, "repair": repair}


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes rows, or pictures of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, metavar="FILE.csv")
    parser.add_argument("--chart", nargs="+", choices=PICTURES, default=list(PICTURES))
    parser.add_argument("--at-most", type=int, metavar="N", help="end after so many new rows")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="draw what is in FILE.csv")
    given = parser.parse_args(arguments)
    rows = read(given.rows)
    if given.pictures:
        for name in given.chart:
            own = [row for row in rows if row.chart == name]
            (given.pictures / f"scale-{name}.svg").write_text(PICTURES[name](own) + "\n")
        return 0
    known = {(row.chart, row.case, row.job) for row in rows}
    missing = [each for each in cases() if each.chart in given.chart and (each.chart, each.case, each.job) not in known]
    with TemporaryDirectory() as folder:
        for case in missing[: given.at_most]:
            rows.append(made(case, Path(folder)))
            with given.rows.open("w", newline="") as file:
                writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
                writer.writeheader()
                writer.writerows(map(asdict, rows))
            print(case.chart, case.case, case.job, file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
