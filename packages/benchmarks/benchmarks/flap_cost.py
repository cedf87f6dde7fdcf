"""What a fault costs a training loop, in base round trips, and how many copies were needless: runs in virtual time.

    python -m benchmarks.flap_cost                                  # link-flap, seeds 1 to 8
    python -m benchmarks.flap_cost --seeds 1-100 --workers 2 --rows rows.jsonl
    python -m benchmarks.flap_cost --scenarios incast,collision --set trimming.enabled=false --short
    python -m benchmarks.flap_cost --setting loss.guard=1           # the guard of one whole base round trip

The cost of a fault is the time between the ends of steps, less the median quiet step of the same phase, added up from
the step in which the fault begins until the step before the next fault; a quiet step ends before the first fault, or
begins ten base round trips after a fault has ended and before the next one begins. A copy was needless if its original
arrived after all: `spurious` as senders find it, `duplicates` as receivers count it, which includes copies of packets
whose acknowledgements were lost.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

from benchmarks.rig.kept import commit, keep, lines
from cli import chosen
from judging import Run, Span
from judging.judge import verdict_of
from judging.measures import steps
from running.launch import made
from scenarios import library

SETTLED_ROUND_TRIPS = 10
"""After a fault has ended: until then its paths may still return."""
SHORT = 0.35
"""With --short: the factor of phases of scenarios that have no short form."""
COUNTERS = ("data_packets", "retransmits", "spurious", "duplicates", "rto", "trims")


def costs(run: Run) -> list[float]:
    """What each fault of phase `faults` cost, in base round trips. None without steps that no fault touches."""
    phase, rtt_ns = run.phases.get("faults"), int(run.options["base_rtt_ns"])
    found = sorted(run.faults, key=lambda fault: fault.start_ns)
    if phase is None or not found:
        return []
    ends = [step.end_ns for step in steps.steps(run)]
    gaps = [Span("step", *pair) for pair in pairwise(ends) if pair[1] > phase.start_ns and pair[0] < phase.stop_ns]
    busy = [(one.start_ns, (one.stop_ns or phase.stop_ns) + SETTLED_ROUND_TRIPS * rtt_ns) for one in found]
    quiet = [gap.length_ns for gap in gaps if all(gap.stop_ns <= first or gap.start_ns >= last for first, last in busy)]
    if not quiet:
        return []
    usual_ns = median(quiet)
    starts = [one.start_ns for one in found]
    owners = [sum(start < gap.stop_ns for start in starts) - 1 for gap in gaps]
    return [
        sum(gap.length_ns - usual_ns for gap, owner in zip(gaps, owners, strict=True) if owner == fault) / rtt_ns
        for fault in range(len(starts))
    ]


def counted(run: Run) -> dict[str, int]:
    """The last counters of all queue pairs that there ever were, added up."""
    last = {
        (host, qp["qp"]): qp for host, samples in run.agent_samples.items() for line in samples for qp in line["qps"]
    }
    return {name: sum(int(qp.get(name, 0)) for qp in last.values()) for name in COUNTERS}


def measured(asked: Mapping[str, Any]) -> dict[str, Any]:
    """One run: its costs, counters and verdict."""
    spec = chosen(asked)
    with tempfile.TemporaryDirectory(prefix="flap-cost-") as folder:
        run = Run.open(made(spec, Path(folder)))
        verdict = verdict_of(run, spec.checks())
        found = {"costs": [round(cost, 3) for cost in costs(run)], **counted(run), "verdict": verdict.word}
        found["failed"] = {one.check: one.reason for one in verdict.findings if one.holds is not True}
    return found


def cases(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The options of each run."""
    first, _, last = options.seeds.partition("-")
    asked = {"world": "simulated", "payload": "counted"}
    asked |= {
        name: getattr(options, name) for name in ("transport", "set", "setting", "rate") if getattr(options, name)
    }
    for seed in range(int(first) if last else 1, int(last or first) + 1):
        for scenario in options.scenarios.split(","):
            short: dict[str, Any] = {"short": True} if library.find(scenario).short else {"time": SHORT}
            yield {"scenario": scenario, **asked, **(short if options.short else {}), "seed": seed}


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A line per scenario: costs over all faults, and copies per 10,000 packets; the worst seed beside."""
    yield f"{'scenario':16} runs true  mean c  worst c  per seed{'':12} resent spurious  /10,000  worst  duplicates"
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        own = [row for row in rows if row["scenario"] == scenario]
        per_seed = [mean(row["costs"]) for row in own if row["costs"]]
        every = [cost for row in own for cost in row["costs"]]
        total = {name: sum(row[name] for row in own) for name in COUNTERS}
        share = 1e4 * total["spurious"] / max(1, total["data_packets"])
        worst = max(1e4 * row["spurious"] / max(1, row["data_packets"]) for row in own)
        spread = f"{min(per_seed):.2f} to {max(per_seed):.2f}" if per_seed else ""
        cost = f"{mean(every):7.2f} {max(every):8.2f}" if every else " " * 16
        true = sum(row["verdict"] == "true" for row in own)
        yield (
            f"{scenario:16} {len(own):4} {true:4} {cost}  {spread:20} {total['retransmits']:6} {total['spurious']:8}"
            f" {share:8.2f} {worst:6.2f} {total['duplicates']:11}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", default="link-flap", metavar="NAME,…", help="scenarios (link-flap)")
    parser.add_argument("--seeds", default="8", metavar="N|A-B", help="1 to N, or A to B (8)")
    parser.add_argument("--transport", default="mrc", metavar="NAME", help="transport (mrc)")
    parser.add_argument("--short", action="store_true", help="short phases")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of the plan; repeatable")
    parser.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE", help="the transport's settings")
    parser.add_argument("--rate", type=float, metavar="MBPS", help="rate of a NIC's port (the plan's)")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="runs made at once (1)")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="runs that are there, and where new ones go")
    options = parser.parse_args(arguments)
    code = commit()
    kept = {(json.dumps(row["options"]), row["commit"]): row for row in lines(options.rows)}
    wanted = list(cases(options))
    missing = [asked for asked in wanted if (json.dumps(asked), code) not in kept]
    with ProcessPoolExecutor(options.workers) as pool:
        for asked, found in zip(missing, pool.map(measured, missing), strict=True):
            row = {"scenario": asked["scenario"], "seed": asked["seed"], "options": asked, "commit": code, **found}
            kept[json.dumps(asked), code] = row
            if options.rows:
                keep(options.rows, row)
            print(
                json.dumps({name: row[name] for name in ("scenario", "seed", "costs", "verdict", *COUNTERS)}),
                flush=True,
            )
    print("\n".join(table([kept[json.dumps(asked), code] for asked in wanted])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
