"""Bytes that each switch of the highest tier sent in recorded runs: how evenly a fabric's upper switches are used.

    ./lab run collision --short --world simulated --seed 7 --transport roce-16qp --plan pods
    python -m benchmarks.core_bytes runs/latest

A line per run: its plan, transport, and the switches, each with megabytes and its share in percent.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from judging import Run

TIERS = "c", "s"
"""Cores, or spines where there are none: `p0c1`, `p0s3`."""


def sent_bytes(run: Run) -> dict[str, int]:
    """Bytes sent in the whole run by each switch of the highest tier."""
    found: dict[str, dict[int, int]] = {}
    for name, samples in run.switch_samples.items():
        ports = found.setdefault(name, {})
        for line in samples:
            ports.update({int(port["port"]): int(port["tx_bytes"]) for port in line["ports"]})
    for tier in TIERS:
        named = {name: sum(ports.values()) for name, ports in found.items() if re.fullmatch(rf"p\d+{tier}\d+", name)}
        if named:
            return dict(sorted(named.items()))
    return {}


def main() -> None:
    parser = argparse.ArgumentParser(description="bytes per switch of the highest tier, run by run")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    for path in parser.parse_args().runs:
        run = Run.open(path)
        counted = sent_bytes(run)
        total = max(1, sum(counted.values()))
        shares = "  ".join(f"{name} {sent / 1e6:.1f} ({sent / total:.0%})" for name, sent in counted.items())
        print(f"{run.options['plan']}  {run.options['transport']}  {shares}")


if __name__ == "__main__":
    main()
