"""How the cost of virtual time grows: data packets a second and memory against hosts, planes, EVs a QP and faults.

    python benchmarks/simulation_curves.py [--hosts 16 64 256 1024] [--bytes 500000] [--svg FILE]

Each row is the permutation of `benchmarks/simulation.py` in a process of its own: of 64 hosts, 4 planes, 128 EVs a QP
and no fault, with one of the four changed. Faults are 1 % loss on one link each, in force all the time. Processor time
of one core; building is counted apart.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.simulation import own_row, permutation  # noqa: E402

USUAL = {"hosts": 64, "planes": 4, "evs": 128, "faults": 0}
AXES = {"hosts": (16, 64, 256, 1024), "planes": (1, 2, 4, 8), "evs": (8, 32, 128), "faults": (0, 16, 64)}
NAMES = {"hosts": "hosts", "planes": "planes", "evs": "EVs a QP", "faults": "faults in force"}


def run(case: dict[str, int], size: int, directory: str) -> dict[str, Any]:
    """One permutation of a case of `USUAL`'s shape."""
    settings = {"evs_active": case["evs"]}
    return permutation(case["hosts"], size, directory, case["planes"], settings, case["faults"])


def draw(curves: dict[str, list[tuple[int, float, float]]], file: Path) -> None:
    """Both quantities against each axis, as an SVG."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "curves"
    from matplotlib import pyplot

    figure, rows = pyplot.subplots(2, len(curves), figsize=(10, 4.2), sharey="row", squeeze=False)
    for place, (axis, points) in enumerate(curves.items()):
        numbers = [number for number, _, _ in points]
        for line, values in enumerate(([rate for _, rate, _ in points], [memory for _, _, memory in points])):
            plot = rows[line][place]
            plot.plot(numbers, values, marker="o", color="#1f5f99" if line == 0 else "#8a4b08")
            plot.set_ylim(bottom=0)
            plot.grid(alpha=0.3)
            if 0 not in numbers:
                plot.set_xscale("log", base=2)
            plot.set_xticks(numbers, [str(number) for number in numbers])
        rows[1][place].set_xlabel(NAMES[axis])
    rows[0][0].set_ylabel("data packets/s")
    rows[1][0].set_ylabel("memory, MB")
    figure.tight_layout()
    figure.savefig(file, format="svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=AXES["hosts"], help="multiples of 16")
    parser.add_argument("--bytes", type=int, default=500_000, help="that each host sends")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw the curves, too")
    parser.add_argument("--row", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        with tempfile.TemporaryDirectory() as directory:
            print(json.dumps(run(options.row, options.bytes, directory)))
        return
    names = "".join(f"{NAMES[axis]:>16}" for axis in AXES)
    print(f"{names}{'data/s':>10}{'us a packet':>13}{'MB':>8}{'build, s':>10}")
    curves: dict[str, list[tuple[int, float, float]]] = {}
    for axis, numbers in {**AXES, "hosts": options.hosts}.items():
        for number in numbers:
            case = {**USUAL, axis: number}
            found = own_row(__file__, json.dumps(case), "--bytes", str(options.bytes))
            rate = found["data"] / found["seconds"]
            curves.setdefault(axis, []).append((number, rate, found["megabytes"]))
            place = "".join(f"{value:16,}" for value in case.values())
            print(
                f"{place}{rate:10,.0f}{1e6 / rate:13.1f}{found['megabytes']:8,.0f}{found['build_s']:10.1f}", flush=True
            )
    if options.svg:
        draw(curves, options.svg)


if __name__ == "__main__":
    main()
