"""How long a fabric takes to come up, tables verified, and to go down, against the number of switches.

    python -m benchmarks.fabric_up                    # tiny, lab, rack, wide on embedded switches
    python -m benchmarks.fabric_up --kind bmv2 tiny lab

Needs root and no lab running. Prints a Markdown table. `links made` is the time until namespaces, links and hosts are
there, `tables` that of the push and verify. Memory is the proportional share of all processes of the lab, and
the largest that this process (Mininet, controller) became.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence
from pathlib import Path

from controller import provision
from topo import Switch, load_plan
from topo.emulation import Lab, process
from topo.plan import SWITCH_KINDS
from topo.planfile import shipped_plans


def proportional_set_mib(pids: Sequence[int]) -> float:
    total_kib = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total_kib += int(line.split()[1])
    return total_kib / 1024


def measure(name: str, kind: str) -> str:
    plan = load_plan(name, {"switch": kind})
    marks: dict[str, float] = {}
    began = time.monotonic()

    def note(what: str, done: int, total: int) -> None:
        if done == total:
            marks[what] = time.monotonic() - began

    def install(lab: Lab, switches: Sequence[Switch]) -> None:
        before = time.monotonic()
        provision(lab, switches)
        marks["tables"] = time.monotonic() - before

    lab = Lab.up(plan, provision=install, progress=note)
    up_s = time.monotonic() - began
    memory_mib = proportional_set_mib(process.find(lab.record.token))
    began = time.monotonic()
    lab.down()
    down_s = time.monotonic() - began
    own_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    links = plan.planes * plan.leaves * (plan.hosts_per_leaf + plan.spines)
    cells = (
        *(name, kind, plan.switch_count, plan.host_count, links, f"{marks['hosts']:.1f}"),
        *(f"{marks.get('tables', 0.0):.1f}", f"{up_s:.1f}", f"{down_s:.1f}", f"{memory_mib:.0f} + {own_mib:.0f}"),
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plans", nargs="*", default=["tiny", "lab", "rack", "wide"], help=", ".join(shipped_plans()))
    parser.add_argument("--kind", choices=SWITCH_KINDS, default="embedded")
    arguments = parser.parse_args()
    header = ("plan", "kind", "switches", "hosts", "links", "links made s", "tables s", "up s", "down s", "memory MiB")
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header), flush=True)
    for name in arguments.plans:
        print(measure(name, arguments.kind), flush=True)


if __name__ == "__main__":
    main()
