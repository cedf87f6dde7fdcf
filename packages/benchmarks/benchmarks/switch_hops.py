"""Processor time per packet and hop of the embedded switches at the rate of a lab, and the delay that they add.

    python -m benchmarks.switch_hops [--plan lab] [--rate-mbps 8] [--seconds 10] [--turns 3] [--against DIR]

All switches of the plan, each in its own network namespace and all in one process, as in a lab. Each NIC port sends
full data packets at `--load` of its rate, spread over the spines, and half as many acknowledgements; every packet
crosses three switches. A host sends once per R/16, as an agent does. R is the plan's base round trip at the rate.

Printed for each turn of the benchmark: packets and hops per second, the share lost, processor time of the driver thread
per packet and hop (kernel included), its sleeps per hop, and how much longer a data packet took than serialization and
propagation, in microseconds: minimum, median, 99th and 99.9th percentile, maximum. The subjects take turns: the
moderation of a lab, none, and with `--against DIR` another checkout as it is. Needs root and a C compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address
from pathlib import Path

HERE = Path(__file__).parents[3]
ROOT = Path(os.environ.get("SWITCH_HOPS_ROOT", HERE))
sys.path.insert(0, str(ROOT))

from benchmarks.rig.namespaces import namespaces  # noqa: E402
from switch.native import RUNTIME, compiler  # noqa: E402
from topo import Host, Node, Plan, load_plan  # noqa: E402
from topo.emulation import PACKET_SWITCH_SYSCTLS, link_commands  # noqa: E402
from topo.emulation.namespace import entered, offloads_off, path_of, run_ip, set_sysctls, set_up  # noqa: E402
from topo.graph import PortRef, peer, ports  # noqa: E402
from topo.plan import ACK_FRAME_BYTES  # noqa: E402
from topo.profile import path_rows  # noqa: E402

VARIANTS = 4
ACK_EVERY = 2
HOPS = 3
MODERATION = 16  # an agent takes what has arrived once in R/16


class Names:
    """The namespaces by node: one for all hosts, one per switch."""

    def __init__(self, plan: Plan, names: list[str]) -> None:
        self.hosts, *rest = names
        self.of_switch = {switch.name: name for switch, name in zip(plan.switches(), rest, strict=True)}

    def netns(self, node: Node) -> str:
        return self.hosts if isinstance(node, Host) else self.of_switch[node.name]


@contextmanager
def wired(plan: Plan) -> Iterator[Names]:
    """The plan's links, up."""
    with namespaces(1 + plan.switch_count) as made:
        names = Names(plan, made)
        for name in made:
            with entered(name):
                set_sysctls(PACKET_SWITCH_SYSCTLS)
        run_ip(link_commands(plan, names))  # type: ignore[arg-type]
        for node in plan.nodes():
            with entered(names.netns(node)):
                interfaces = [ref.interface for ref in ports(plan, node)]
                set_up(interfaces)
                if isinstance(node, Host):
                    offloads_off(interfaces)
        yield names


def serve(document: Path) -> None:
    """The switches, with their tables written; answers each line with figures of the driver thread."""
    from controller import DirectControl, compiled_pipelines
    from controller.tables import tables
    from switch import parse_config
    from switch.native import NativeDataPlane
    from topo.emulation import serve_config

    told = json.loads(document.read_text())
    plan = load_plan(told["plan"]).at_rate(told["rate_bps"])
    config = serve_config(plan, list(plan.switches()), document.parent)
    for device in config["devices"]:
        for port in device["ports"]:
            port["netns"] = str(path_of(told["names"][device["name"]]))
    turn_ns = config.get("turn_ns", 0) if told["moderated"] else 0
    devices = {device.name: device for device in parse_config(config).devices}
    before = {*os.listdir("/proc/self/task")}
    plane = NativeDataPlane(**({"turn_ns": turn_ns} if turn_ns else {}))
    driver = min({*os.listdir("/proc/self/task")} - before, key=int)
    pipelines = compiled_pipelines()
    for switch in plan.switches():
        engine = plane.create(devices[switch.name], lambda frame: None)
        DirectControl(engine, pipelines[switch.program]).install(tables(plan, switch))
    print("ready", flush=True)
    for _ in sys.stdin:
        status = Path(f"/proc/self/task/{driver}/status").read_text()
        sleeps = int(status.partition("voluntary_ctxt_switches:")[2].split()[0])
        print(json.dumps({"cpu_ns": plane.cpu_ns(), "sleeps": sleeps}), flush=True)
    plane.close()


def frame(da: str, dst_mac: str, src_mac: str, dscp: int, size: int) -> bytes:
    """An IPv6 packet of `size` bytes with the path's uSIDs."""
    mac = bytes.fromhex((dst_mac + src_mac).replace(":", ""))
    header = struct.pack(">IHBB", 6 << 28 | dscp << 22 | 2 << 20, size - 54, 59, 64)
    body = IPv6Address("fd00::1").packed + IPv6Address(da).packed + bytes(size - 54)
    return mac + b"\x86\xdd" + header + body


def frames(plan: Plan) -> bytes:
    """For each NIC port its data frames, then its acknowledgements, each after its length, for switch_hops.c."""
    found = []
    hosts = list(plan.hosts())
    for host in hosts:
        other = hosts[(host.index + plan.hosts_per_leaf) % len(hosts)]
        rows = path_rows(plan, host, other)
        for ref in ports(plan, host):
            das = [row["da"] for row in rows if row["port"] == ref.port] * VARIANTS
            gateway = peer(plan, PortRef(host, ref.port)).mac
            for dscp, size in ((plan.dscp.trimmable, plan.frame_bytes_max), (plan.dscp.control, ACK_FRAME_BYTES)):
                made = [frame(da, gateway, ref.mac, dscp, size) for da in das[:VARIANTS]]
                found += [struct.pack("<I", len(one)) + one for one in made]
    return b"".join(found)


class Switches:
    """A process with the switches of one checkout."""

    def __init__(self, root: Path, document: Path) -> None:
        words = [sys.executable, __file__, "--serve", str(document)]
        environment = {**os.environ, "SWITCH_HOPS_ROOT": str(root)}
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=root
        )
        assert self.process.stdout
        if self.process.stdout.readline().strip() != "ready":
            raise SystemExit("the switches ended before they were ready")

    def figures(self) -> dict[str, int]:
        assert self.process.stdin
        assert self.process.stdout
        print(file=self.process.stdin, flush=True)
        found: dict[str, int] = json.loads(self.process.stdout.readline())
        return found

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def build_tool(directory: Path) -> Path:
    tool = directory / "switch_hops"
    words = [*compiler(), "-D_GNU_SOURCE", "-std=gnu11", "-O2", "-pthread", f"-I{RUNTIME}", "-o", str(tool)]
    subprocess.run([*words, str(Path(__file__).with_suffix(".c"))], check=True)
    return tool


def turn(plan: Plan, names: Names, switches: Switches, tool: Path, load: float, seconds: float) -> dict[str, float]:
    per_packet = plan.frame_bytes_max + ACK_FRAME_BYTES / ACK_EVERY
    rate = load * plan.links.host_rate_bps / 8 / per_packet
    grid_ns = plan.base_rtt_ns // MODERATION
    words = (plan.host_count, plan.planes, f"{rate:.3f}", ACK_EVERY, grid_ns, seconds, 1)
    before = switches.figures()
    inside = ("nsenter", f"--net={path_of(names.hosts)}", tool)
    done = subprocess.run([*map(str, inside), *map(str, words)], input=frames(plan), stdout=subprocess.PIPE, check=True)
    used = {name: value - before[name] for name, value in switches.figures().items()}
    counts = json.loads(done.stdout)
    hops = HOPS * counts["received"]
    # The sender's link takes no time here; the last leaf's port has the delay of both edges.
    links = plan.path_links(HOPS)[1:]
    ideal_ns = sum(plan.frame_bytes_max * 8_000_000_000 // rate_bps + delay_ns for rate_bps, delay_ns in links)
    ideal_ns += plan.links.edge_delay_ns
    extra = {name: (counts[name] - ideal_ns) / 1000 for name in ("min", "p50", "p99", "p999", "max")}
    return {
        "lost": 1 - counts["received"] / counts["sent"],
        "hops_per_s": hops / seconds,
        "cpu_us": used["cpu_ns"] / 1000 / hops,
        "sleeps": used["sleeps"] / hops,
        **extra,
    }


COLUMNS = ("hops_per_s", "lost", "cpu_us", "sleeps", "min", "p50", "p99", "p999", "max")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", default="lab", help="with at most 128 NIC ports")
    parser.add_argument("--rate-mbps", type=float, default=8.0, help="of each port")
    parser.add_argument("--load", type=float, default=0.9, help="share of a port's rate that is sent")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each turn")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--against", type=Path, action="append", default=[], help="another checkout; may be repeated")
    parser.add_argument("--json", type=Path, help="write the results here too")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    if os.geteuid():
        raise SystemExit("switch_hops: needs root to make network namespaces")
    rate_bps = round(options.rate_mbps * 1e6)
    plan = load_plan(options.plan).at_rate(rate_bps)
    subjects = [(str(root), root, False) for root in options.against]
    subjects += [("at once", HERE, False), ("moderated", HERE, True)]
    rows = []
    print(f"R = {plan.base_rtt_ns / 1e6:.1f} ms\n{'':24}", *(f"{name:>10}" for name in COLUMNS))
    with tempfile.TemporaryDirectory() as scratch, wired(plan) as names:
        document = Path(scratch) / "switches.json"
        tool = build_tool(Path(scratch))
        for _ in range(options.turns):
            for label, root, moderated in subjects:
                told = {"plan": options.plan, "rate_bps": rate_bps, "names": names.of_switch, "moderated": moderated}
                document.write_text(json.dumps(told))
                switches = Switches(root, document)
                try:
                    row = turn(plan, names, switches, tool, options.load, options.seconds)
                finally:
                    switches.close()
                rows.append({"subject": label, **row})
                print(f"{label[-24:]:24}", *(f"{row[name]:10.3f}" for name in COLUMNS), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
