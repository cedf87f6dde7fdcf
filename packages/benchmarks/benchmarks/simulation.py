"""How fast virtual time is: data packets and packet-hops a second of one core, beside uet-htsim where it is given.

    python -m benchmarks.simulation [--round-trips 100] [--hosts 1024] [--bytes 2000000] [--port-gbps 100]
        [--payload counted|real] [--processes N] [--htsim DIRECTORY] [--turns 5]

Two runs of the lab, each in a separate process. `collision` on `rack`: the scenario's workload without faults, after it
has filled its windows. The permutation: every host writes `--bytes` to another, on a two-tier fabric of 4 planes with
full bisection and cables of 1 us, until all is there. A packet-hop is a frame that a switch puts on a cable. Figures
are in processor time; building and provisioning are counted apart.

`--htsim` is the directory `htsim/sim/datacenter` of uet-htsim with `htsim_uec` built: the same permutation on its
`leaf_spine_1024.topo`, one plane with ports of 100 Gb/s and cables of 1 us, before ours, `--turns` times by turns. The
last lines have the best and the median of each program: a machine whose memory is busy slows both, and not alike. With
`--processes` ours is divided, and its time is that of the busiest process, which waits for the others on its core. Its
packet-hops are reckoned from the packets that it counts: three switches a packet, one under the same leaf,
acknowledgements included. Both programs get their memory in huge pages where the kernel gives them to who asks.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from endpoint import call
from running import RunDirectory, group
from running.parallel import PartWorld, communicator
from running.parallel.runs import mpiexec
from running.transport_choice import Payload, transport
from running.worlds import SimulatedWorld
from scenarios import Setting, Workload, library
from switch.native import NativeFabric
from topo import Plan, load_plan
from topo.plan import Links

ROOT = Path(__file__).parents[3]

SEED = 1
WARM_ROUND_TRIPS = 20
HTSIM_ARGUMENTS = (
    "-sender_cc_only -topo topologies/leaf_spine_1024.topo -tm connection_matrices/perm_1024n_1024c_0u_2000000b.cm"
    " -load_balancing_algo mixed -linkspeed 100000 -mtu 4096 -paths 64 -q 88 -ecn 20 70 -end 2000"
)
HOSTS_A_LEAF = 32
TURNS_LEAST = 5
MESSAGE_BYTES = 65536
PLANES = 4
CABLE_NS = 1_000
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""As `./lab` sets it for virtual time; uet-htsim also gains by it."""


def make_world(plan: Plan, directory: str, payload: Payload = "real") -> SimulatedWorld:
    run = RunDirectory.create(Path(directory), "benchmark", SEED)
    chosen = replace(transport("mrc"), payload=payload)
    return SimulatedWorld(plan, chosen, SEED, run, lambda event: None)


def make_part(ranks: communicator.Ranks) -> Callable[..., SimulatedWorld]:
    """Makes a world as `make_world` does, of which this process has its part."""

    def make(plan: Plan, place: str, payload: Payload) -> SimulatedWorld:
        own = RunDirectory.create(Path(place), "benchmark", SEED) if ranks.rank == 0 else None
        chosen = replace(transport("mrc"), payload=payload)
        shared = ranks.comm.bcast(own, root=0)
        return PartWorld(ranks, lambda now_ns: None, plan, chosen, SEED, shared, lambda event: None)

    return make


def divided(processes: int, measured: Callable[[Callable[..., SimulatedWorld]], dict[str, Any]]) -> dict[str, Any]:
    """The row of a measurement that this process makes alone, or all of them together. Times are the busiest process's;
    `rank` is this one's, 0 in the one that has to tell."""
    if processes == 1:
        return measured(make_world)
    ranks = communicator.Ranks(communicator.world())
    rows = ranks.comm.allgather(measured(make_part(ranks)))
    ranks.meet(None)
    whole = dict(rows[0])
    whole |= {name: max(row[name] for row in rows) for name in ("seconds", "build_s", "prepare_s")}
    whole |= {name: sum(row[name] for row in rows) for name in ("hops", "megabytes")}
    return {**whole, "rank": ranks.rank}


def data_packets(world: SimulatedWorld) -> int:
    return sum(qp["data_packets"] for client in world.clients.values() for qp in call(client, "counters")["qps"])


def hops(world: SimulatedWorld) -> int:
    fabric = world.fabric.fabric
    assert isinstance(fabric, NativeFabric)
    return fabric.hops


def measure(
    world: SimulatedWorld, workloads: Sequence[Workload], build_s: float, plan: Plan, trips: int
) -> dict[str, Any]:
    """Processor seconds and what was moved in them; `trips` 0: until every workload is over."""
    groups = [group(workload, world) for workload in workloads]
    prepared_s = time.process_time()
    start_ns = world.now_ns()
    if not trips:
        before = 0, hops(world), time.process_time(), start_ns
    for running in groups:
        running.start(start_ns)
    if trips:
        world.wait_until(WARM_ROUND_TRIPS * plan.base_rtt_ns)
        before = data_packets(world), hops(world), time.process_time(), world.now_ns()
        world.wait_until((WARM_ROUND_TRIPS + trips) * plan.base_rtt_ns)
    else:
        for running in groups:
            stuck = [status for status in running.wait(60.0).values() if status["state"] != "finished"]
            assert not stuck, stuck[:1]
    spent_s = time.process_time() - before[2]
    return {
        "hosts": plan.host_count,
        "switches": plan.switch_count,
        "build_s": build_s,
        "prepare_s": prepared_s - build_s,
        "seconds": spent_s,
        "virtual_s": (world.now_ns() - before[3]) / 1e9,
        "data": data_packets(world) - before[0],
        "hops": hops(world) - before[1],
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


def collision(trips: int, directory: str) -> dict[str, Any]:
    scenario = library.find("collision")
    plan = load_plan(scenario.plan)
    world = make_world(plan, directory)
    setting = Setting(plan, "mrc", SEED, {phase.name: phase.seconds for phase in scenario.phases})
    return measure(world, list(scenario.workloads(setting)), time.process_time(), plan, trips)


def permutation(
    hosts: int, size: int, directory: str, *, port_bps: int, payload: Payload, make: Callable[..., SimulatedWorld]
) -> dict[str, Any]:
    """`make` makes the world, as `make_world` does."""
    leaves = max(2, hosts // HOSTS_A_LEAF)
    rates = Links(port_bps, port_bps, CABLE_NS, CABLE_NS)
    plan = Plan("permutation", PLANES, leaves, HOSTS_A_LEAF, hosts // leaves, links=rates)
    world = make(plan, directory, payload)
    for client in world.clients.values():
        call(client, "sample", interval_ns=0, paths=False)
    stream = {"size": MESSAGE_BYTES, "depth": 4, "messages": -(-size // MESSAGE_BYTES), "shift": hosts // 2 + 1}
    return measure(world, [Workload("permutation", stream)], time.process_time(), plan, 0)


def own_row(name: str, *arguments: str, processes: int = 1) -> dict[str, Any]:
    """A run in a separate process, or in several, so that its memory is its own."""
    starter = [mpiexec(), "-n", str(processes)] if processes > 1 else []
    words = [*starter, sys.executable, "-m", "benchmarks.simulation", "--row", name, *arguments]
    done = subprocess.run(
        words, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, env={**os.environ, **HUGE_PAGES}
    )
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def htsim_row(directory: Path) -> dict[str, Any]:
    """Raises RuntimeError when htsim ends without the counts."""
    matrix = (directory / "connection_matrices" / "perm_1024n_1024c_0u_2000000b.cm").read_text()
    pairs = [(int(a), int(b)) for a, b in re.findall(r"^(\d+)->(\d+)", matrix, re.MULTILINE)]
    switches = sum(1 if a // HOSTS_A_LEAF == b // HOSTS_A_LEAF else 3 for a, b in pairs) / len(pairs)
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [str(directory / "htsim_uec"), *HTSIM_ARGUMENTS.split()],
            cwd=directory,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **HUGE_PAGES},
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        last = (output.read().strip().splitlines() or [""])[-1]
    counts = dict(re.findall(r"(\w+): (\d+)", last))
    if "New" not in counts:
        raise RuntimeError(f"htsim_uec did not end with its counts but with {process.returncode} and {last!r}")
    data = int(counts["New"]) + int(counts.get("Rtx", 0))
    packets = data + sum(int(counts.get(name, 0)) for name in ("ACKs", "NACKs", "Pulls"))
    seconds = usage.ru_utime + usage.ru_stime
    row = {"hosts": 1024, "data": data, "hops": round(packets * switches), "seconds": seconds}
    return {**row, "megabytes": usage.ru_maxrss / 1e3}


def best_and_median(rates: Sequence[float]) -> str:
    """Both of one program's packet-hops a second, for the last lines."""
    few = "" if len(rates) >= TURNS_LEAST else f"; {len(rates)} of the {TURNS_LEAST} turns that a comparison takes"
    return f"best {max(rates):,.0f}, median {median(rates):,.0f}{few}"


def show(name: str, row: dict[str, Any]) -> None:
    rates = f"{row['data'] / row['seconds']:12,.0f} {row['hops'] / row['seconds']:14,.0f}"
    print(
        f"{name:24} {row['hosts']:6,} {row['data']:10,} {row['seconds']:9.1f} {rates} {row['megabytes']:8,.0f}",
        flush=True,
    )


def print_row(options: argparse.Namespace) -> None:
    """The numbers of one run in this process, as JSON: of the first of its parts."""
    with tempfile.TemporaryDirectory() as directory:
        if options.row == "collision":
            print(json.dumps(collision(options.round_trips, directory)))
        else:
            permute = partial(
                permutation,
                options.hosts,
                options.bytes,
                directory,
                port_bps=options.port_gbps * 1_000_000_000,
                payload=options.payload,
            )
            row = divided(options.processes, lambda make: permute(make=make))
            if not row.pop("rank", 0):
                print(json.dumps(row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--round-trips", type=int, default=100, help="of collision on rack, after its warm-up")
    parser.add_argument("--hosts", type=int, default=1024, help="of the permutation; a multiple of 32")
    parser.add_argument("--bytes", type=int, default=2_000_000, help="that each host of the permutation sends")
    parser.add_argument("--port-gbps", type=int, default=100, help="of each port of the permutation")
    parser.add_argument("--payload", choices=("counted", "real"), default="counted", help="of the permutation")
    parser.add_argument("--processes", type=int, default=1, help="that the permutation is divided among")
    parser.add_argument("--htsim", type=Path, metavar="DIRECTORY", help="of a built uet-htsim: htsim/sim/datacenter")
    parser.add_argument("--turns", type=int, default=TURNS_LEAST, help="how often uet-htsim and the permutation run")
    parser.add_argument("--row", choices=("collision", "permutation"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        print_row(options)
        return
    print(f"{'':24} {'hosts':>6} {'data':>10} {'CPU, s':>9} {'data/s':>12} {'packet-hops/s':>14} {'MB':>8}")
    rows = {"collision on rack": own_row("collision", "--round-trips", str(options.round_trips))}
    show("collision on rack", rows["collision on rack"])
    arguments = {
        "--hosts": options.hosts,
        "--bytes": options.bytes,
        "--port-gbps": options.port_gbps,
        "--payload": options.payload,
        "--processes": options.processes,
    }
    rates: dict[str, list[float]] = {}
    for _ in range(options.turns):
        theirs = htsim_row(options.htsim) if options.htsim else None
        if theirs:
            show("uet-htsim permutation", theirs)
            rates.setdefault("uet-htsim", []).append(theirs["hops"] / theirs["seconds"])
        words = [word for pair in arguments.items() for word in map(str, pair)]
        ours = own_row("permutation", *words, processes=options.processes)
        show("our permutation", ours)
        print(
            f"{ours['switches']} switches and {ours['hosts']} hosts built and provisioned in {ours['build_s']:.1f} s,"
            f" prepared in {ours['prepare_s']:.1f} s; {ours['virtual_s'] * 1e6:,.0f} us of virtual time",
            flush=True,
        )
        rates.setdefault("ours", []).append(ours["hops"] / ours["seconds"])
    for program, per_second in rates.items():
        print(f"packet-hops a second, {program}: {best_and_median(per_second)}")
    if "uet-htsim" in rates:
        best, middle = (kind(rates["ours"]) / kind(rates["uet-htsim"]) for kind in (max, median))
        print(
            f"ours over uet-htsim's: {best:.2f} of the best, {middle:.2f} of the medians; payload {options.payload},"
            f" {options.processes} process{'es' if options.processes > 1 else ''}"
        )


if __name__ == "__main__":
    main()
