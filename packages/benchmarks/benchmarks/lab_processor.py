"""The cost of a data packet on real links: the processor time of a whole run by process, per data packet.

    python -m benchmarks.lab_processor [FOLDER ...] [--turns 3] [--scenario link-flap] [--rate 8] [--set …]

Each FOLDER is a checkout of the project, this one by default; several run by turns, so that a revision is compared with
the one before on the same machine. A run is the scenario's short form at a fixed rate of a NIC port. The time that each
process used from the start of phase `reference` to the end of phase `faults` is divided by the data packets that hosts
sent meanwhile, by the samples in their journals. The columns are microseconds of processor per data packet, the part of
them in the kernel (by clock ticks), and how often processes waited voluntarily. `packet, agent` is an agent's time per
packet, sent and received, of data and of control. Needs root, no lab running, and a machine without other work.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).parents[3]
TICK_S = os.sysconf("SC_CLK_TCK")
POLL_S = 0.05
ROLES = ("agents", "switches", "runner", "kernel threads")


Spent = Counter[str]
"""The use of processes: `ns` of processor, ticks in `user` and `kernel` mode, voluntary `waits`."""


@dataclass(slots=True)
class Snapshot:
    """All processes of the machine at one time."""

    at_ns: int
    busy_s: float
    processes: dict[tuple[int, str], tuple[str, Spent]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Figures:
    """One run's."""

    status: int
    seconds: float
    data_packets: int
    agent_packets: int
    busy_s: float
    roles: dict[str, Spent]


def role(pid: int) -> str:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    if words == [b""]:
        return "kernel threads"
    if b"endpoint" in words and words[words.index(b"endpoint") + 1 :][:1] in ([b"agent"], [b"agents"]):
        return "agents"
    if b"switch" in words:
        return "switches"
    return "runner" if b"cli" in words else "others"


def snapshot() -> Snapshot:
    busy = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    found = Snapshot(time.monotonic_ns(), (sum(busy[:3]) + sum(busy[5:7])) / TICK_S)
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError, ValueError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            spent = Spent(user=int(fields[11]), kernel=int(fields[12]))
            for task in (entry / "task").iterdir():
                spent["ns"] += int((task / "schedstat").read_text().split()[0])
                lines = (task / "status").read_text().splitlines()
                spent["waits"] += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary"))
            found.processes[int(entry.name), fields[19]] = (role(int(entry.name)), spent)
    return found


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines():
        with contextlib.suppress(ValueError):
            yield json.loads(line)


def wait_for(process: subprocess.Popen[bytes], folder: Path, phase: str, state: str) -> None:
    """Until the runner's journal has the line. RuntimeError when the run has ended before."""
    needle = f'"kind":"phase","name":"{phase}","state":"{state}"'
    while not any(needle in path.read_text() for path in folder.glob("*/*/journal/runner.jsonl")):
        if process.poll() is not None:
            raise RuntimeError((folder / "output").read_text()[-800:])
        time.sleep(POLL_S)


def packets(journal: Path, start_ns: int, stop_ns: int) -> tuple[int, int]:
    """Data packets that a host sent between these times, and all packets sent and received, by its samples."""
    data, both = [], []
    for line in lines_of(journal):
        if line["kind"] == "sample":
            at = int(line["t_ns"])
            data.append((at, sum(row.get("data_packets", 0) for row in line["qps"])))
            both.append((at, sum(row["tx_packets"] + row["rx_packets"] for row in line["ports"])))
    return _between(data, start_ns, stop_ns), _between(both, start_ns, stop_ns)


def _between(samples: list[tuple[int, int]], start_ns: int, stop_ns: int) -> int:
    first, last = (min(samples, key=lambda sample: abs(sample[0] - at_ns)) for at_ns in (start_ns, stop_ns))
    return round((last[1] - first[1]) / max(last[0] - first[0], 1) * (stop_ns - start_ns))


def run(checkout: Path, words: list[str]) -> Figures:
    """One run from the sources in `checkout`."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        command = [str(checkout / ".venv/bin/python"), "-m", "cli", "run", *words, "--plain", "--runs", scratch]
        paths = [checkout, *sorted(checkout.glob("packages/*/"))]
        sources = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}  # two checkouts may share .venv
        with (folder / "output").open("wb") as output:
            process = subprocess.Popen(command, cwd=checkout, env=sources, stdout=output, stderr=subprocess.STDOUT)
        wait_for(process, folder, "reference", "start")
        before = snapshot()
        wait_for(process, folder, "faults", "stop")
        after = snapshot()
        status = process.wait()
        roles = {name: Spent() for name in (*ROLES, "others")}
        for key, (name, spent) in after.processes.items():
            roles[name].update(spent)
            if key in before.processes:
                roles[name].subtract(before.processes[key][1])
        hosts = list(folder.glob("*/*/journal/h*.jsonl"))
        sent = [packets(path, before.at_ns, after.at_ns) for path in hosts]
        return Figures(
            status,
            (after.at_ns - before.at_ns) / 1e9,
            sum(data for data, _ in sent),
            sum(both for _, both in sent),
            after.busy_s - before.busy_s,
            roles,
        )


def show(name: str, runs: list[Figures]) -> None:
    data = sum(one.data_packets for one in runs)
    rate = data / sum(one.seconds for one in runs)
    busy = sum(one.busy_s for one in runs)
    cores = busy / sum(one.seconds for one in runs)
    print(f"\n{name}: {len(runs)} runs, {data} data packets, {rate:.0f}/s, {cores:.2f} cores busy")
    print(f"{'per data packet':16} {'processor':>10} {'kernel':>7} {'waits':>6}")
    for role_name in ROLES:
        spent = sum((one.roles[role_name] for one in runs), Spent())
        share = spent["kernel"] / max(1, spent["user"] + spent["kernel"])
        print(f"{role_name:16} {spent['ns'] / data / 1e3:7.1f} µs {share:7.0%} {spent['waits'] / data:6.2f}")
    whole = [sum(one.roles[name]["ns"] for name in ROLES) / one.data_packets / 1e3 for one in runs]
    print(f"{'whole run':16} {mean(whole):7.1f} µs   ({', '.join(f'{value:.1f}' for value in whole)})")
    agent_packets = sum(one.agent_packets for one in runs)
    agents_us = sum(one.roles["agents"]["ns"] for one in runs) / agent_packets / 1e3
    print(f"{'packet, agent':16} {agents_us:7.1f} µs   ({agent_packets / data:.2f} packets)")
    others_s = sum(one.roles["others"]["ns"] for one in runs) / 1e9
    statuses = [one.status for one in runs]
    print(f"other processes: {others_s / busy:.0%} of the machine's busy time; exit statuses {statuses}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[ROOT], metavar="FOLDER")
    parser.add_argument("--turns", type=int, default=3, help="runs of each folder (3)")
    parser.add_argument("--scenario", default="link-flap")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change one key of the plan")
    parser.add_argument("--rate", type=float, default=8.0, help="of a NIC port in Mb/s (8)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if os.geteuid():
        raise SystemExit("lab_processor: needs root to make network namespaces")
    words = [options.scenario, "--short", "--rate", str(options.rate), "--seed", str(options.seed)]
    words += [word for change in options.set for word in ("--set", change)]
    found: dict[Path, list[Figures]] = {folder.resolve(): [] for folder in options.folders}
    for turn in range(options.turns):
        for folder in found if turn % 2 else reversed(found):
            found[folder].append(run(folder, words))
    for folder, runs in found.items():
        show(folder.name, runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
