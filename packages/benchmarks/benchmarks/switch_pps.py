"""Packets a second and CPU a packet of the embedded switch running leaf.p4 between two veth pairs.

    python -m benchmarks.switch_pps [--sizes 128,1100,4200] [--seconds 1.0]

For each frame size, the highest offered rate at which at most 1 % of the frames is missing at the receiver (bisected),
and the CPU time a packet at that rate and at 10,000 packets/s, of

- the embedded switch (native engine, tables written, one uSID shift, route, next hop, admission and ECN tables),
- a bare forwarder in C: the same sockets, buffers and batches, nothing in between,
- BMv2's simple_switch with the same program and entries, when simple_switch and p4c are on PATH; its queues are made
  deep, or it would drop in every burst.

Segmentation and checksum offloads are off on every interface: with them on, libpcap sizes BMv2's receive ring for
64 KB frames, and BMv2 loses two thirds of its rate.

All are up at once, each between its own veth pairs, and their trials take turns within one size, so that what else
the machine does falls on all of them alike. The CPU time at 10,000 packets/s is the median of three turns. CPU time is
that of the device's process, without the sender's and the receiver's. Needs root and a C compiler.
"""

import argparse
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path
from typing import NamedTuple

from benchmarks.rig.namespaces import namespaces
from p4c import compile_program
from p4c.entries import ActionCall, Entry, Exact, Lpm
from switch import EngineControl
from switch.native import RUNTIME, compiler
from topo.emulation.namespace import entered, offloads_off, path_of

# leaf.p4: compiled, the entries that forward one uSID list, and the frame that uses them.
SOURCE = Path(__file__).parents[3] / "p4" / "leaf.p4"
FRAME_HEADER_BYTES = 54
DSCP = 10
TRAFFIC_CLASS = 1
NEXT_HOP = 7
SRC_MAC, DST_MAC = 0x020000000001, 0x020000000002
OWN_USID, NEXT_USID, NIC_USID = 0x1000, 0x2000, 0x3001


def address(*usids: int) -> int:
    return int(IPv6Address("fcbb:bbbb::")) | sum(usid << (80 - 16 * place) for place, usid in enumerate(usids))


# What the controller installs for one flow: class, own uSID, route, next hop, admission. Limits that are never reached.
ROWS: tuple[tuple[str, tuple[Exact | Lpm, ...], str, tuple[int, ...]], ...] = (
    ("SwitchIngress.classify.dscp_to_class", (Exact(DSCP),), "SwitchIngress.classify.set_class", (TRAFFIC_CLASS, 0)),
    ("SwitchIngress.segments.my_sid", (Lpm(address(OWN_USID), 48),), "SwitchIngress.segments.end_un", ()),
    ("SwitchIngress.route.ipv6_route", (Lpm(address(NEXT_USID), 48),), "SwitchIngress.route.set_next_hop", (NEXT_HOP,)),
    ("SwitchIngress.route.next_hop", (Exact(NEXT_HOP),), "SwitchIngress.route.set_adjacency", (2, SRC_MAC, DST_MAC)),
    (
        "SwitchIngress.admission.queue_limit",
        (Exact(2), Exact(TRAFFIC_CLASS)),
        "SwitchIngress.admission.trim_beyond",
        (60_000, 1_000_000),
    ),
    (
        "SwitchEgress.ecn.ecn_profile",
        (Exact(2), Exact(TRAFFIC_CLASS)),
        "SwitchEgress.ecn.mark_between",
        (50_000, 60_000),
    ),
)


def compile_leaf(directory: Path) -> Path:
    """BMv2 JSON of leaf.p4, by our compiler."""
    target = directory / "leaf.json"
    target.write_text(compile_program(SOURCE).json_text)
    return target


def install(engine: EngineControl) -> None:
    for table, matches, action, args in ROWS:
        engine.insert_entry(table, Entry(matches, ActionCall(action, args)))


def simple_switch_entries() -> list[str]:
    """The same entries for simple_switch_CLI."""
    lines = []
    for table, matches, action, args in ROWS:
        keys = [f"0x{m.value:x}/{m.prefix_len}" if isinstance(m, Lpm) else str(m.value) for m in matches]
        lines.append(f"table_add {table} {action} {' '.join(keys)} => {' '.join(map(str, args))}")
    return lines


def frame(size: int) -> bytes:
    """A data packet of `size` bytes whose active uSID is ours."""
    header = struct.pack(">IHBB", 6 << 28 | DSCP << 22 | 2 << 20, size - FRAME_HEADER_BYTES, 59, 64)
    source = int(IPv6Address("fd00::1")).to_bytes(16, "big")
    destination = address(OWN_USID, NEXT_USID, NIC_USID).to_bytes(16, "big")
    payload = bytes(i & 0xFF for i in range(size - FRAME_HEADER_BYTES))
    return b"\x02" * 6 + b"\x04" * 6 + b"\x86\xdd" + header + source + destination + payload


LOSS_MAX = 0.01
COMMON_RATE = 10_000
COMMON_TURNS = 3
RATE_FIRST = 20_000.0
RATE_MAX = 4_000_000.0
BISECTIONS = 5


@dataclass(frozen=True)
class Result:
    device: str
    frame_bytes: int
    best_pps: float
    cpu_us: float
    cpu_us_common: float | None  # at COMMON_RATE; None when it cannot carry that


class Wires:
    """Two veth pairs from a namespace of hosts (h1, h2) to one of the device (s1, s2)."""

    def __init__(self, stack: ExitStack) -> None:
        self.hosts, self.device = stack.enter_context(namespaces(2))
        for name in (self.hosts, self.device):
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
        for pair in "12":
            ends = ((self.hosts, f"h{pair}"), (self.device, f"s{pair}"))
            (near, near_end), (far, far_end) = ends
            run("ip", "link", "add", near_end, "netns", near, "type", "veth", "peer", far_end, "netns", far)
            for namespace, end in ends:
                run("ip", "-n", namespace, "link", "set", end, "mtu", "9000", "up")
                with entered(namespace):
                    offloads_off([end])


def cpu_ns(pid: int) -> int:
    """Processor time of a process so far, by the kernel's clock of it."""
    return time.clock_gettime_ns(~pid << 3 | 2)


def run(*words: str, text: str | None = None) -> str:
    done = subprocess.run(words, check=False, capture_output=True, text=True, input=text, timeout=120)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed: {done.stderr or done.stdout}")
    return done.stdout


def build_tool(directory: Path) -> Path:
    """The generator and the bare forwarder: `switch_traffic.c` over the runtime's packet sockets."""
    tool = directory / "switch_traffic"
    source = Path(__file__).with_name("switch_traffic.c")
    flags = ("-D_GNU_SOURCE", "-std=gnu11", "-O2", "-pthread", f"-I{RUNTIME}")
    run(*compiler(), *flags, "-o", str(tool), str(source), str(RUNTIME / "driver" / "wire.c"))
    return tool


@contextmanager
def process(*words: str | Path, ready: str | None) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert child.stdout
        if ready:
            while (line := child.stdout.readline()).strip() != ready:
                if not line:
                    raise SystemExit(f"{words[0]} ended before it was ready")
        yield child
    finally:
        child.kill()
        child.wait()


@contextmanager
def native(wires: Wires, program: Path, tool: Path) -> Iterator[int]:
    with process(sys.executable, __file__, "--serve", str(program), path_of(wires.device), ready="ready") as child:
        yield child.pid


@contextmanager
def bare(wires: Wires, program: Path, tool: Path) -> Iterator[int]:
    with process(tool, "forward", path_of(wires.device), "s1", "s2", ready="ready") as child:
        yield child.pid


@contextmanager
def bmv2(wires: Wires, program: Path, tool: Path) -> Iterator[int]:
    words = ["ip", "netns", "exec", wires.device, "simple_switch", "-i", "1@s1", "-i", "2@s2", "--thrift-port", "9090"]
    with process(*words, str(program), "--", "--priority-queues", "8", ready=None) as child:
        entries = "\n".join([*simple_switch_entries(), "set_queue_depth 100000", ""])
        cli = ("ip", "netns", "exec", wires.device, "simple_switch_CLI", "--thrift-port", "9090")
        deadline = time.monotonic() + 20
        while subprocess.run(cli, input="show_tables\n", capture_output=True, text=True, check=False).returncode:
            if time.monotonic() > deadline:
                raise SystemExit("simple_switch does not answer on its Thrift port")
            time.sleep(0.2)
        said = run(*cli, text=entries)
        if "Error" in said or "Invalid" in said:
            raise SystemExit(f"simple_switch_CLI: {said}")
        yield child.pid


DEVICES = {"embedded": native, "bare": bare, "bmv2": bmv2}


class Trial(NamedTuple):
    """One burst of traffic."""

    sent_pps: float
    lost: float  # share
    cpu_us: float  # of the device, a packet received


class Best(NamedTuple):
    pps: float
    cpu_us: float


Search = Generator[float, Trial, Best]  # yields the rate to try next, is sent the trial


@dataclass(frozen=True)
class Device:
    wires: Wires
    tool: Path
    pid: int

    def trial(self, size: int, rate: float, seconds: float) -> Trial:
        before = cpu_ns(self.pid)
        words = (
            str(self.tool),
            "generate",
            path_of(self.wires.hosts),
            "h1",
            "h2",
            str(size),
            f"{rate:.0f}",
            f"{seconds}",
        )
        done = subprocess.run(words, input=frame(size), capture_output=True, check=True, timeout=120)
        used = cpu_ns(self.pid) - before
        counts = json.loads(done.stdout)
        received = max(counts["received"], 1)
        return Trial(
            counts["sent"] / counts["seconds"], 1 - counts["received"] / counts["sent"], used / received / 1000
        )


def search() -> Search:
    """The highest rate with at most LOSS_MAX lost, and the CPU time per packet at it."""
    best = Best(0.0, 0.0)
    rate, bad = RATE_FIRST, RATE_MAX
    while rate < RATE_MAX:
        tried = yield rate
        if tried.lost > LOSS_MAX:
            bad = rate
            break
        if tried.sent_pps > best.pps:
            best = Best(tried.sent_pps, tried.cpu_us)
        if tried.sent_pps < 0.9 * rate:  # the sender has reached its own limit
            return best
        rate *= 1.6
    low = best.pps
    for _ in range(BISECTIONS):
        middle = (low + bad) / 2
        tried = yield middle
        if tried.lost > LOSS_MAX:
            bad = middle
        else:
            low = middle
            if tried.sent_pps > best.pps:
                best = Best(tried.sent_pps, tried.cpu_us)
    return best


def take_turns(searches: Mapping[str, Search], trial: Callable[[str, float], Trial]) -> dict[str, Best]:
    """Run the searches side by side, a trial of each in turn until it has found its rate."""
    best: dict[str, Best] = {}
    rates = {name: next(running) for name, running in searches.items()}
    while rates:
        for name, rate in list(rates.items()):
            tried = trial(name, rate)
            try:
                rates[name] = searches[name].send(tried)
            except StopIteration as end:
                best[name] = end.value
                del rates[name]
    return best


def measure(devices: Mapping[str, Device], size: int, seconds: float) -> list[Result]:
    for device in devices.values():
        device.trial(size, RATE_FIRST / 4, 0.2)  # warm up
    best = take_turns({name: search() for name in devices}, lambda name, rate: devices[name].trial(size, rate, seconds))
    common: dict[str, list[Trial]] = {name: [] for name in devices}
    for _ in range(COMMON_TURNS):
        for name, device in devices.items():
            common[name].append(device.trial(size, COMMON_RATE, max(seconds, 1.0)))
    return [
        Result(
            name,
            size,
            best[name].pps,
            best[name].cpu_us,
            statistics.median(tried.cpu_us for tried in turns) if max(t.lost for t in turns) <= LOSS_MAX else None,
        )
        for name, turns in common.items()
    ]


def serve(program: Path, netns: str) -> None:
    """The embedded switch, until killed."""
    from p4c.model import load
    from switch import DeviceConfig, PortSpec
    from switch.native import NativeDataPlane

    plane = NativeDataPlane()
    ports = (PortSpec(1, "s1", netns), PortSpec(2, "s2", netns))
    engine = plane.create(DeviceConfig(1, "leaf", ports), lambda *_: None)
    engine.load(load(program))
    install(engine)
    print("ready", flush=True)
    sys.stdin.read()
    plane.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="128,1100,4200", help="frame sizes in bytes, comma-separated")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each trial")
    parser.add_argument("--devices", default="embedded,bare,bmv2", help="which to measure")
    parser.add_argument("--serve", nargs=2, metavar=("PROGRAM", "NETNS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(Path(options.serve[0]), options.serve[1])
        return
    sizes = [int(word) for word in options.sizes.split(",")]
    if min(sizes) < FRAME_HEADER_BYTES or max(sizes) > 9000:
        raise SystemExit(f"--sizes: each must be {FRAME_HEADER_BYTES}..9000 bytes")
    if os.geteuid():
        raise SystemExit("switch_pps: needs root to make network namespaces")
    names = [name for name in options.devices.split(",") if name in DEVICES]
    if "bmv2" in names and not shutil.which("simple_switch"):
        print("simple_switch is not on PATH: BMv2 is left out")
        names.remove("bmv2")
    results: list[Result] = []
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        program = compile_leaf(scratch)
        tool = build_tool(scratch)
        devices = {}
        for name in names:
            wires = Wires(stack)
            devices[name] = Device(wires, tool, stack.enter_context(DEVICES[name](wires, program, tool)))
        print(f"{'device':10} {'bytes':>6} {'packets/s':>10} {'Mbit/s':>8} {'CPU us/packet':>14} {'at 10k/s':>9}")
        for size in sizes:
            for result in measure(devices, size, options.seconds):
                results.append(result)
                common = f"{result.cpu_us_common:.2f}" if result.cpu_us_common is not None else "-"
                mbps = result.best_pps * result.frame_bytes * 8 / 1e6
                columns = f"{result.device:10} {result.frame_bytes:6} {result.best_pps:10.0f} {mbps:8.0f}"
                print(f"{columns} {result.cpu_us:14.2f} {common:>9}", flush=True)
    for line in compare(results):
        print(line)


def compare(results: list[Result]) -> list[str]:
    by_key = {(r.device, r.frame_bytes): r for r in results}
    lines = []
    for (device, size), mine in by_key.items():
        if device != "embedded":
            continue
        parts = []
        if other := by_key.get(("bmv2", size)):
            parts.append(f"{mine.best_pps / other.best_pps:.1f} times BMv2's rate")
        if other := by_key.get(("bare", size)):
            parts.append(f"{mine.cpu_us / other.cpu_us:.2f} times the bare forwarder's CPU per packet at its best rate")
            if mine.cpu_us_common and other.cpu_us_common:
                parts.append(f"{mine.cpu_us_common / other.cpu_us_common:.2f} times at {COMMON_RATE} packets/s")
        if parts:
            lines.append(f"{size} bytes: {', '.join(parts)}")
    return lines


if __name__ == "__main__":
    main()
