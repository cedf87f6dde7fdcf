"""All-reduce of the backend for PyTorch, by ring and by tree, beside the lab's own ring workload on the same fabric.

    python -m benchmarks.torch_all_reduce                       # in virtual time: exact, and the same on every machine
    python -m benchmarks.torch_all_reduce --plan tiny           # with four ranks
    python -m benchmarks.torch_all_reduce --world emulated      # on real links: root, and an idle machine

A row per size: bus bandwidth, which is 2 (n - 1) / n times size over time, as nccl-tests count it; the lab's ring; the
share of it that the backend reaches by what it picks; and the processor time of a rank per megabyte, which is what
Python and PyTorch cost. In virtual time that processor time delays nothing. Ends with 1 if a pick is slower than the
other algorithm by more than 5 %.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from endpoint import WorkloadGroup
from running import RunDirectory
from running.transport_choice import transport
from running.worlds import EmulatedWorld, SimulatedWorld, World
from scenarios.ddp import torch_python
from topo import Plan, load_plan

ROOT = Path(__file__).resolve().parents[3]

SECOND_NS = 1_000_000_000
SIZES = (1_024, 16_384, 65_536, 153_640, 262_144, 524_288, 1_048_576, 4_194_304)
"""In bytes; 153,640 are the weights of the scenarios `job` and `ddp`."""
LIMIT_S = 600.0
RANK = Path(__file__).parent / "rig" / "torch_rank.py"
SLOWER_MAX = 1.05


def lab_ring(world: World, size: int, rounds: int) -> float:
    """Seconds of one round of the lab's workload, without its own check of the sums."""
    options = {"size": size, "rounds": rounds + 1}
    group = WorkloadGroup(
        world.clients,
        name=f"ring{size}",
        kind="all_reduce",
        ranks=list(world.clients),
        options=options,
        clock=world.now_ns,
    )
    group.start()
    statuses = group.wait(LIMIT_S)
    group.remove()
    mean_us = statuses[next(iter(world.clients))]["result"]["table"]["rows"][0][5]
    return float(mean_us) / 1e6


def ours(world: World, directory: RunDirectory, sizes: Sequence[int], rounds: int) -> list[dict[str, Any]]:
    """The rows that rank 0 prints. RuntimeError if a rank fails."""
    hosts = list(world.clients)
    settings = [f"WORLD_SIZE={len(hosts)}", f"MRCLAB_MEET={directory.path / 'meet'}", f"PYTHONPATH={ROOT}"]
    words = [torch_python(), str(RANK), str(rounds), *map(str, sizes)]
    processes = [
        world.spawn(host, ["env", f"RANK={rank}", *settings, "PYTHONSAFEPATH=1", *words], f"{host}-torch")
        for rank, host in enumerate(hosts)
    ]
    end_ns = world.now_ns() + round(LIMIT_S * SECOND_NS)
    while world.now_ns() < end_ns and any(process.poll() is None for process in processes):
        world.wait_until(world.now_ns() + SECOND_NS // 5)
    logs = [(directory.path / "logs" / f"{host}-torch.log").read_text() for host in hosts]
    for host, process, log in zip(hosts, processes, logs, strict=True):
        if process.poll() != 0:
            raise RuntimeError(f"rank on {host} ended with {process.poll()}: {log[-1500:]}")
    return [json.loads(line) for line in logs[0].splitlines() if line.startswith("{")]


def table(rows: Sequence[dict[str, Any]], rings: dict[int, float], plan: Plan) -> list[str]:
    """Markdown."""
    ranks = plan.host_count
    host_mbps = plan.links.host_rate_bps * plan.planes / 1e6
    lines = [
        f"{ranks} ranks, {host_mbps:g} Mb/s per host, round trip {plan.base_rtt_ns / 1e6:.1f} ms",
        "",
        "| bytes | lab's ring, Mb/s | ring | tree | picked | share of the lab's ring | processor, ms per MB |",
        "|---:|---:|---:|---:|---|---:|---:|",
    ]
    for size in rings:
        found = {row["name"]: row for row in rows if row["size"] == size}
        rate = {name: 2 * (ranks - 1) / ranks * size * 8 / row["s"] / 1e6 for name, row in found.items()}
        lab = 2 * (ranks - 1) / ranks * size * 8 / rings[size] / 1e6
        picked = found["ring"]["picked"]
        cost = found[picked]["processor_s"] * 1e3 / (size / 1e6)
        lines.append(
            f"| {size:,} | {lab:.2f} | {rate['ring']:.2f} | {rate['tree']:.2f} | {picked}"
            f" | {rate[picked] / lab:.0%} | {cost:.0f} |"
        )
    return lines


def wrong_picks(rows: Sequence[dict[str, Any]]) -> list[int]:
    """Sizes at which the algorithm that is picked is clearly slower than the other one."""
    by_key = {(row["size"], row["name"]): row for row in rows}
    picks = {row["size"]: row["picked"] for row in rows}
    return [
        size
        for size, name in picks.items()
        if by_key[size, name]["s"] > SLOWER_MAX * min(by_key[size, other]["s"] for other in ("ring", "tree"))
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", choices=("simulated", "emulated"), default="simulated")
    parser.add_argument("--plan", default="lab")
    parser.add_argument("--rounds", type=int, default=5, help="all-reduces per size and algorithm, after one more (5)")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="BYTES")
    chosen = parser.parse_args(arguments)
    plan = load_plan(chosen.plan)
    tell = partial(print, file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="mrclab-benchmark-") as folder:
        directory = RunDirectory.create(Path(folder), "torch-all-reduce", 1)
        kind = SimulatedWorld if chosen.world == "simulated" else EmulatedWorld
        world: World = kind(plan, transport("mrc"), 1, directory, tell)
        try:
            world.wait_until(world.now_ns() + SECOND_NS)
            rings = {}
            for size in chosen.sizes:
                tell(f"the lab's ring, {size:,} bytes")
                rings[size] = lab_ring(world, size, chosen.rounds)
            tell("PyTorch")
            rows = ours(world, directory, chosen.sizes, chosen.rounds)
        finally:
            world.close()
    print("\n".join(table(rows, rings, plan)))
    if wrong := wrong_picks(rows):
        print(f"\nthe slower algorithm is picked for {', '.join(f'{size:,}' for size in wrong)} bytes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
