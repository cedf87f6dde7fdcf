"""How the cost of virtual time grows: data packets per second and memory against six axes.

    python -m benchmarks.simulation_curves [--hosts 16 64 256 1024] [--bytes 500000] [--times 5] [--svg FILE]

Each row is the permutation of `benchmarks/simulation.py` in separate processes: of 64 hosts, 4 planes, 128 EVs a QP, no
fault, messages of 64 KiB and one process, with one of the six changed; a host's ports share 100 Gb/s, and payload is
carried. Faults are 1 % loss on one link each, in force all the time. Processor time of the busiest process, which waits
for the others on its core; building is counted apart. Memory is that of all processes together. All rows are measured
by turns, `--times` times over: what is printed and drawn is the median, beside the least and the most.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.simulation import MESSAGE_BYTES, divided, own_row, permutation, starter

USUAL = {"hosts": 64, "planes": 4, "evs": 128, "faults": 0, "message": MESSAGE_BYTES, "processes": 1}
AXES = {
    "hosts": (16, 64, 256, 1024),
    "planes": (1, 2, 4, 8),
    "evs": (8, 32, 128),
    "faults": (0, 16, 64),
    "message": (4096, 65536, 524288),
    "processes": (1, 2),
}
SHARED_BPS = 100_000_000_000
"""Of a host's ports together: so many planes move no more than one."""
NAMES = {
    "hosts": "hosts",
    "planes": "planes",
    "evs": "EVs per QP",
    "faults": "faults in force",
    "message": "message, bytes",
    "processes": "processes",
}
DRAWN = {"message": "message, KiB"}
"""Names where the drawing has another unit: six figures have no room under a narrow plot."""


def run(case: dict[str, int], size: int, directory: str) -> dict[str, Any]:
    """One permutation of a case of `USUAL`'s shape; of several processes, all call it and each has the whole row."""
    permute = partial(
        permutation,
        case["hosts"],
        size,
        directory,
        port_bps=SHARED_BPS // case["planes"],
        planes=case["planes"],
        settings={"evs_active": case["evs"]},
        losses=case["faults"],
        message_bytes=case["message"],
    )
    return divided(case["processes"], lambda make: permute(make=make))


KIB = 1024
Point = tuple[int, list[float], float]
"""A number on an axis, the data packets per second that were measured there, and the memory in MB."""


def label(axis: str, number: int) -> str:
    return str(number // KIB if axis in DRAWN else number)


def draw(curves: Mapping[str, Sequence[Point]], file: Path) -> None:
    """Both quantities against each axis, as an SVG; the band is from the least to the most."""
    from common.interpreter import mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "curves"
    from matplotlib import pyplot

    figure, rows = pyplot.subplots(2, len(curves), figsize=(10, 4.2), sharey="row", squeeze=False)
    for place, (axis, points) in enumerate(curves.items()):
        numbers = [number for number, _, _ in points]
        rates = [rates for _, rates, _ in points]
        above, below = rows[0][place], rows[1][place]
        above.plot(numbers, [statistics.median(one) for one in rates], marker="o", color="#1f5f99")
        above.fill_between(
            numbers, [min(one) for one in rates], [max(one) for one in rates], color="#1f5f99", alpha=0.2
        )
        below.plot(numbers, [memory for _, _, memory in points], marker="o", color="#8a4b08")
        for plot in (above, below):
            plot.grid(alpha=0.3)
            if 0 not in numbers:
                plot.set_xscale("log", base=2)
            plot.set_xticks(numbers, [label(axis, number) for number in numbers])
        below.set_xlabel(DRAWN.get(axis, NAMES[axis]))
    for row in rows:  # all curves are there: the limit at the top stays as it is from here on
        row[0].set_ylim(bottom=0)
    rows[0][0].set_ylabel("data packets/s")
    rows[1][0].set_ylabel("memory, MB")
    figure.tight_layout()
    figure.savefig(file, format="svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=AXES["hosts"], help="multiples of 16")
    parser.add_argument("--bytes", type=int, default=500_000, help="that each host sends")
    parser.add_argument("--times", type=int, default=5, help="that each row is measured")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="also draw the curves")
    parser.add_argument("--row", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        with tempfile.TemporaryDirectory() as directory:
            row = run(options.row, options.bytes, directory)
        if not row.pop("rank", 0):
            print(json.dumps(row))
        return
    axes = {**AXES, "hosts": options.hosts}
    cases = {tuple({**USUAL, axis: number}.values()) for axis, numbers in axes.items() for number in numbers}
    found: dict[tuple[int, ...], list[dict[str, Any]]] = {case: [] for case in sorted(cases)}
    for time in range(options.times):
        for case, rows in found.items():
            sys.stderr.write(f"{time + 1} of {options.times}: {dict(zip(AXES, case, strict=True))}\n")
            values = dict(zip(AXES, case, strict=True))
            words = ["--bytes", str(options.bytes)]
            rows.append(own_row(__file__, json.dumps(values), *words, starter=starter(values["processes"])))
    names = "".join(f"{NAMES[axis]:>16}" for axis in AXES)
    print(f"{names}{'data/s':>10}{'us a packet':>13}{'(least, most)':>16}{'MB':>8}{'build, s':>10}")
    for case, rows in found.items():
        us = [row["seconds"] / row["data"] * 1e6 for row in rows]
        median = statistics.median(us)
        place = "".join(f"{value:16,}" for value in case)
        spread = f"({min(us):.1f}, {max(us):.1f})"
        built_s = statistics.median(row["build_s"] for row in rows)
        print(f"{place}{1e6 / median:10,.0f}{median:13.1f}{spread:>16}{memory(rows):8,.0f}{built_s:10.1f}")
    if options.svg:
        curves: dict[str, list[Point]] = {axis: [] for axis in axes}
        for axis, numbers in axes.items():
            for number in numbers:
                rows = found[tuple({**USUAL, axis: number}.values())]
                curves[axis].append((number, [row["data"] / row["seconds"] for row in rows], memory(rows)))
        draw(curves, options.svg)


def memory(rows: Sequence[Mapping[str, Any]]) -> float:
    """The most that a row took, in MB."""
    return max(float(row["megabytes"]) for row in rows)


if __name__ == "__main__":
    main()
