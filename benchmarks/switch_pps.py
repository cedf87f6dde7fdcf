"""Packets a second and CPU a packet of the embedded switch running leaf.p4 between two veth pairs.

    python benchmarks/switch_pps.py [--sizes 128,1100,4200] [--seconds 1.0] [--json FILE]

For each frame size, the highest offered rate at which at most 1 % of the frames is missing at the receiver (bisected),
and the CPU time a packet at that rate and at 10,000 packets/s, of

- the embedded switch (native engine, tables written, one uSID shift, route, next hop, admission and ECN tables),
- a bare forwarder in C: the same sockets, buffers and batches, nothing in between,
- BMv2's simple_switch with the same program and entries, when simple_switch and p4c are on PATH; its queues are made
  deep, or it would drop in every burst.

CPU time is that of the device's process, whatever the sender and the receiver use. Needs root and a C compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.switch_leaf import FRAME_HEADER_BYTES, compile_leaf, frame, install, simple_switch_entries  # noqa: E402
from switch.native.build import RUNTIME, compiler  # noqa: E402

LOSS_MAX = 0.01
COMMON_RATE = 10_000
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
        self.hosts, self.device = (f"mrcbench-{side}{os.getpid()}" for side in "hd")
        for name in (self.hosts, self.device):
            run("ip", "netns", "add", name)
            stack.callback(run, "ip", "netns", "del", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
        for pair in "12":
            run(
                "ip",
                "link",
                "add",
                f"h{pair}",
                "netns",
                self.hosts,
                "type",
                "veth",
                "peer",
                f"s{pair}",
                "netns",
                self.device,
            )
            run("ip", "-n", self.hosts, "link", "set", f"h{pair}", "mtu", "9000", "up")
            run("ip", "-n", self.device, "link", "set", f"s{pair}", "mtu", "9000", "up")

    @property
    def device_path(self) -> str:
        return f"/run/netns/{self.device}"

    @property
    def hosts_path(self) -> str:
        return f"/run/netns/{self.hosts}"


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
    run(*compiler(), *flags, "-o", str(tool), str(source), str(RUNTIME / "wire.c"))
    return tool


def cpu_ns(pid: int) -> int:
    """CPU time of another process (the kernel's per-process clock)."""
    return time.clock_gettime_ns(~pid << 3 | 2)


@contextmanager
def process(*words: str, ready: str | None) -> Iterator[subprocess.Popen[str]]:
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
    with process(sys.executable, __file__, "--serve", str(program), wires.device_path, ready="ready") as child:
        yield child.pid


@contextmanager
def bare(wires: Wires, program: Path, tool: Path) -> Iterator[int]:
    with process(str(tool), "forward", wires.device_path, "s1", "s2", ready="ready") as child:
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


def trial(wires: Wires, tool: Path, pid: int, size: int, rate: float, seconds: float) -> tuple[float, float, float]:
    """(rate sent, share lost, CPU us a packet received) of one burst of traffic."""
    before = cpu_ns(pid)
    words = (str(tool), "generate", wires.hosts_path, "h1", "h2", str(size), f"{rate:.0f}", f"{seconds}")
    done = subprocess.run(words, input=frame(size), capture_output=True, check=True, timeout=120)
    used = cpu_ns(pid) - before
    counts = json.loads(done.stdout)
    received = max(counts["received"], 1)
    return counts["sent"] / counts["seconds"], 1 - counts["received"] / counts["sent"], used / received / 1000


def best_rate(wires: Wires, tool: Path, pid: int, size: int, seconds: float) -> tuple[float, float]:
    """The highest rate with at most LOSS_MAX lost, and the CPU time a packet at it."""
    trial(wires, tool, pid, size, RATE_FIRST / 4, 0.2)  # warm up
    good, cpu_us = 0.0, 0.0
    rate, bad = RATE_FIRST, RATE_MAX
    while rate < RATE_MAX:
        sent, lost, used = trial(wires, tool, pid, size, rate, seconds)
        if lost > LOSS_MAX:
            bad = rate
            break
        if sent > good:
            good, cpu_us = sent, used
        if sent < 0.9 * rate:  # the sender has reached its own limit
            return good, cpu_us
        rate *= 1.6
    low = good
    for _ in range(BISECTIONS):
        middle = (low + bad) / 2
        sent, lost, used = trial(wires, tool, pid, size, middle, seconds)
        if lost > LOSS_MAX:
            bad = middle
        else:
            low = middle
            if sent > good:
                good, cpu_us = sent, used
    return good, cpu_us


def measure(name: str, wires: Wires, program: Path, tool: Path, sizes: list[int], seconds: float) -> Iterator[Result]:
    with DEVICES[name](wires, program, tool) as pid:
        for size in sizes:
            best, cpu_us = best_rate(wires, tool, pid, size, seconds)
            _, lost, common = trial(wires, tool, pid, size, COMMON_RATE, max(seconds, 1.0))
            yield Result(name, size, best, cpu_us, common if lost <= LOSS_MAX else None)


def serve(program: Path, netns: str) -> None:
    """The embedded switch, until killed."""
    from switch.config import DeviceConfig, PortSpec
    from switch.model import load
    from switch.native.dataplane import NativeDataPlane

    plane = NativeDataPlane()
    ports = (PortSpec(1, "s1", netns), PortSpec(2, "s2", netns))
    engine = plane.create(DeviceConfig(1, "leaf", ports), lambda frame: None)
    engine.load(load(program))
    install(engine)
    print("ready", flush=True)
    sys.stdin.read()
    plane.close()


def load_times(program: Path) -> dict[str, float]:
    """Seconds to compile and load leaf.p4 (and the runtime) in a fresh process, with an empty and with a full cache."""
    code = (
        "import sys, time; from pathlib import Path; from switch.model import load\n"
        "from switch.native.engine import NativeEngine\n"
        "t = time.perf_counter(); NativeEngine().load(load(Path(sys.argv[1]))); print(time.perf_counter() - t)"
    )
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache, "PYTHONPATH": str(ROOT)}
        times = [
            float(
                subprocess.check_output(
                    [sys.executable, "-c", code, str(program)], env=environment, text=True, cwd=ROOT
                )
            )
            for _ in range(2)
        ]
    return {"cold_s": times[0], "cached_s": times[1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="128,1100,4200", help="frame sizes in bytes, comma-separated")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each trial")
    parser.add_argument("--devices", default="embedded,bare,bmv2", help="which to measure")
    parser.add_argument("--json", type=Path, help="write the results here too")
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
        times = load_times(program)
        print(f"compile and load leaf.p4: {times['cold_s']:.2f} s cold, {times['cached_s']:.3f} s cached")
        wires = Wires(stack)
        print(f"{'device':10} {'bytes':>6} {'packets/s':>10} {'Mbit/s':>8} {'CPU us/packet':>14} {'at 10k/s':>9}")
        for name in names:
            for result in measure(name, wires, program, tool, sizes, options.seconds):
                results.append(result)
                common = f"{result.cpu_us_common:.2f}" if result.cpu_us_common is not None else "-"
                mbps = result.best_pps * result.frame_bytes * 8 / 1e6
                columns = f"{name:10} {result.frame_bytes:6} {result.best_pps:10.0f} {mbps:8.0f}"
                print(f"{columns} {result.cpu_us:14.2f} {common:>9}", flush=True)
    ratios = compare(results)
    for line in ratios:
        print(line)
    if options.json:
        options.json.write_text(json.dumps({"load": times, "results": [asdict(r) for r in results]}, indent=1) + "\n")


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
            parts.append(f"{mine.cpu_us / other.cpu_us:.2f} times the bare forwarder's CPU a packet at its best rate")
            if mine.cpu_us_common and other.cpu_us_common:
                parts.append(f"{mine.cpu_us_common / other.cpu_us_common:.2f} times at {COMMON_RATE} packets/s")
        if parts:
            lines.append(f"{size} bytes: {', '.join(parts)}")
    return lines


if __name__ == "__main__":
    main()
