"""The cost of libmrc beside uverbs' Python library: `python -m benchmarks.libmrc`. Neither root nor a lab.

The same writes by a program in C and by one in Python, in turn, over two NICs in memory: processor time of the program
and of the NICs with their agents. And both ways to use memory that a program has already: copies, as libmrc makes them,
and a shared file mapped over the program's pages. Needs a C compiler and `libibverbs-dev`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.rig.uverbs_rig import End, Rig, rig
from mrclab import SendWR
from running import sdk
from switch.native import compiler
from topo.emulation import Lab, namespace

SMALL, LARGE = 8, 1 << 20
COUNTS = {SMALL: 16_384, LARGE: 64}
DEPTH, SIGNALED = 64, 16
EXEC = (sys.executable, "-m", "cli", "exec")


def build(folder: Path) -> str:
    """The program in C."""
    program, library = folder / "program", sdk.library()
    source = str(Path(__file__).with_suffix(".c"))
    words = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", f"-I{sdk.INCLUDE}", "-o", str(program), source]
    subprocess.run([*compiler(), *words, f"-L{library}", f"-Wl,-rpath,{library}", "-lmrc"], check=True)
    return str(program)


def in_c(program: str, made: Rig, size: int, count: int) -> float:
    """Nanoseconds of processor time of the program in C."""
    words = [program, "write", str(size), str(count), *(f"mrc_{name}" for name in made.names)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def in_python(made: Rig, size: int, count: int) -> float:
    """The same of a Python program, which is a process as well."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, str(python_writes(made.names, size, count)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        spent_ns = float(said.read())
    os.waitpid(child, 0)
    return spent_ns


def python_writes(names: Sequence[str], size: int, count: int) -> int:
    """Posts as the program in C does."""
    one, other = (End(name, size, max_send_wr=DEPTH) for name in names)
    one.qp.connect(other.qp.info())
    other.qp.connect(one.qp.info())
    before_ns = time.process_time_ns()
    posted = told = 0
    while told < count // SIGNALED:
        if posted < count and posted - told * SIGNALED < DEPTH:
            signaled = posted % SIGNALED == SIGNALED - 1
            one.qp.post_send(SendWR(1, one.mr, 0, size, other.mr.addr, other.mr.rkey, signaled=signaled))
            posted += 1
        else:
            told += len(one.cq.wait(num_entries=DEPTH))
    return time.process_time_ns() - before_ns


def measured(run: Callable[[Rig, int, int], float], size: int, repeat: int) -> tuple[float, float]:
    """Nanoseconds per write, of the program and of the NICs: the best of several."""
    found = []
    for _ in range(repeat):
        with rig() as made:
            count, before_ns = COUNTS[size], time.process_time_ns()
            program_ns = run(made, size, count)
            found.append((program_ns / count, (time.process_time_ns() - before_ns) / count))
    return min(program for program, _ in found), min(nics for _, nics in found)


def print_costs(repeat: int) -> None:
    """Both tables."""
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        kinds: dict[str, Callable[[Rig, int, int], float]] = {
            "C": lambda made, size, count: in_c(program, made, size, count),
            "Python": in_python,
        }
        print(f"{'':8}{'program, µs/write':>18}{'program, ns/byte':>18}{'NICs, µs/write':>16}{'NICs, ns/byte':>16}")
        for name, run in kinds.items():
            small, large = measured(run, SMALL, repeat), measured(run, LARGE, repeat)
            rest = [(big - little) / LARGE for big, little in zip(large, small, strict=True)]
            print(f"{name:8}{small[0] / 1e3:18.2f}{rest[0]:18.3f}{small[1] / 1e3:16.1f}{rest[1]:16.3f}")
        rows: dict[str, list[float]] = {}
        for _ in range(repeat):
            done = subprocess.run([program, "copies"], check=True, capture_output=True, text=True)
            for line in done.stdout.splitlines():
                what, _, cost = line.partition("\t")
                rows.setdefault(what, []).append(float(cost))
        print(f"\n{'memory that the program has':28}ns/byte")
        for what, costs in rows.items():
            print(f"{what:28}{min(costs):7.3f}")


def print_bandwidths(repeat: int, seconds: int) -> None:
    """`ib_write_bw` and `mrc_write_bw` by turns, between the first and the last host of a running lab. Needs root."""
    lab = Lab.attach()
    first, last = "h0", f"h{lab.plan.host_count - 1}"
    print("Mb/s by turns")
    for _ in range(repeat):
        rates = {}
        for program in ("ib_write_bw", "mrc_write_bw"):
            words = [program, "-D", str(seconds), "-s", "65536"]
            server = subprocess.Popen([*EXEC, last, "--", *words], stdout=subprocess.DEVNULL)
            try:
                while not namespace.listens(lab.name.netns(lab.plan.host(last))):
                    time.sleep(0.05)
                client = [*EXEC, first, "--", *words, "--report_gbits", last]
                said = subprocess.run(client, check=True, capture_output=True, text=True).stdout
            finally:
                server.wait(60)
            (row,) = [line.split() for line in said.splitlines() if line.split()[:1] == ["65536"]]
            rates[program] = float(row[3]) * 1e3
        share = rates["ib_write_bw"] / rates["mrc_write_bw"]
        print("  ".join(f"{name} {rate:.2f}" for name, rate in rates.items()) + f"  {share:.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="measurements of each kind; the best counts (3)")
    parser.add_argument(
        "--lab", action="store_true", help="perftest's bandwidth on the lab that is up, with its agents"
    )
    parser.add_argument("--seconds", type=int, default=6, help="with --lab: of each measurement (6)")
    options = parser.parse_args()
    if options.lab:
        print_bandwidths(options.repeat, options.seconds)
    else:
        print_costs(options.repeat)


if __name__ == "__main__":
    main()
