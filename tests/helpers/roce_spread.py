"""Bytes of each core and queue pair under RoCE's forms: `python -m tests.helpers.roce_spread` prints a table.

Three workloads run without faults on three plans. From the addresses and ports of each packet in the packet log, the
CRC-32 of zlib says which core the packet should cross.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

from running.options import Choices
from running.runner import make_run
from running.spec import RunSpec
from running.transport_choice import TRANSPORTS, transport
from scenarios.scenario import Phase, Scenario, Workload
from topo import Plan, Switch
from topo.address import host_address
from topo.planfile import load_plan

SECONDS = 4.0
PLANS: Mapping[str, tuple[str, dict[str, str]]] = {
    "lab": ("lab", {}),
    "pods": ("pods", {}),
    "rails": ("lab", {"fabric.topology": "rails", "fabric.rails": "2"}),
}
KINDS: Mapping[str, dict[str, Any]] = {
    "permutation": {"size": 65_536, "depth": 2, "messages": 32, "shift": 3},
    "all_reduce": {"size": 1 << 19, "rounds": 2},
    "all_to_all": {"size": 1 << 18, "rounds": 16},
}
FORMS = [name for name, choice in TRANSPORTS.items() if choice.single_plane]


@dataclass
class Spread:
    """Bytes of the cores, those that the hash gives them, and bytes of the queue pairs, by their ends and number."""

    cores: Counter[str] = field(default_factory=Counter)
    hashed: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str, int]] = field(default_factory=Counter)


def core_of(plan: Plan, source: str, destination: str, sport: int) -> str:
    """The highest switch between two hosts: at each switch on the way up, the member that the hash names."""
    hosts, topology = {host.name: host for host in plan.hosts()}, plan.topology
    addresses = b"".join(host_address(plan, hosts[name]).packed for name in (source, destination))
    hashed = crc32(addresses + ((sport << 16 | plan.packets.udp_port) << 4).to_bytes(7, "big"))
    switch, below = (Switch(0, "leaf", topology.leaf_of(hosts[name])) for name in (source, destination))
    ports = topology.next_ports(switch, below.index)
    while switch.role == "leaf" or len(ports) > 1:
        shift = 0 if switch.role == "leaf" else 8 + switch.index % 8
        above = topology.neighbour(switch, sorted(ports)[(hashed >> shift) % len(ports)])
        assert isinstance(above, Switch)
        switch, ports = above, topology.next_ports(above, below.index)
    return switch.name


def spread(name: str, kind: str, form: str) -> Spread:
    """A run of this workload on this plan with this form of RoCE."""
    file, keys = PLANS[name]
    plan, chosen = load_plan(file, keys), transport(form)
    options = {**KINDS[kind], "qps": chosen.queue_pairs}
    scenario = Scenario(
        name="spread", title="", description="", plan=file,
        workloads=lambda setting: [Workload(kind, options, phase="reference")],
        timeline=lambda setting: [], checks=lambda setting: [], phases=(Phase("reference", SECONDS),),
    )  # fmt: skip
    choices = Choices(chosen, plan, seed=7, world="simulated", record_packets_s=(0.0, 2 * SECONDS))
    with TemporaryDirectory() as folder:
        path = make_run(RunSpec(scenario, choices), Path(folder))
        return counted(choices.running_plan, (path / "packets.jsonl").read_text().splitlines())


def counted(plan: Plan, log: Iterable[str]) -> Spread:
    """The bytes of data in a packet log."""
    found, place = Spread(), cache(lambda *path: core_of(plan, *path))
    top = "core" if any(switch.role == "core" for switch in plan.switches()) else "spine"
    cores = {switch.name for switch in plan.switches() if switch.role == top}
    found.cores, found.hashed = (Counter(dict.fromkeys(sorted(cores), 0)) for _ in range(2))
    for line in map(json.loads, log):
        if line.get("fate") != "sent" or not (line["op"] or "").startswith("WRITE"):
            continue
        if line["node"] == line["src"]:
            found.pairs[line["src"], line["dst"], line["qpn"]] += line["bytes"]
        elif line["node"] in cores:
            found.cores[line["node"]] += line["bytes"]
            found.hashed[place(line["src"], line["dst"], line["ev"])] += line["bytes"]
    return found


def row(name: str, kind: str, form: str) -> str:
    """A row of the table: megabytes of each core, and how many queue pairs carry how much."""
    found = spread(name, kind, form)
    cores = ", ".join(f"{count / 1e6:.1f}" for count in found.cores.values())
    pairs = sorted(count / 1e6 for count in found.pairs.values())
    return f"| {name} | {kind} | `{form}` | {cores} | {len(pairs)} | {pairs[0]:.3f} to {pairs[-1]:.3f} |"


if __name__ == "__main__":
    for name in PLANS:
        for kind in KINDS:
            for form in FORMS:
                print(row(name, kind, form), flush=True)
