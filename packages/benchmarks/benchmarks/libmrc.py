"""The cost of libmrc beside uverbs' Python library: `python -m benchmarks.libmrc`. Neither root nor a lab.

The same writes by a program in C and by one in Python, in turn, over two NICs in memory: processor time of the program
and of the NICs with their agents. Needs a C compiler and `libibverbs-dev`.
"""

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.rig.uverbs_rig import End, Rig, rig
from mrclab import SendWR
from running import sdk
from switch.native import compiler

SMALL, LARGE = 8, 1 << 20
COUNTS = {SMALL: 16_384, LARGE: 64}
DEPTH, SIGNALED = 64, 16


def build(folder: Path) -> str:
    """The program in C."""
    program, library = folder / "program", sdk.library()
    source = str(Path(__file__).with_suffix(".c"))
    words = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", f"-I{sdk.INCLUDE}", "-o", str(program), source]
    subprocess.run([*compiler(), *words, f"-L{library}", f"-Wl,-rpath,{library}", "-lmrc"], check=True)
    return str(program)


def in_c(program: str, made: Rig, size: int, count: int) -> float:
    """Nanoseconds of processor time of the program in C."""
    words = [program, str(size), str(count), *(f"mrc_{name}" for name in made.names)]
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
    sender, other = (End(name, size, max_send_wr=DEPTH) for name in names)
    sender.qp.connect(other.qp.info())
    other.qp.connect(sender.qp.info())
    before_ns = time.process_time_ns()
    posted = told = 0
    while told < count // SIGNALED:
        if posted < count and posted - told * SIGNALED < DEPTH:
            signaled = posted % SIGNALED == SIGNALED - 1
            sender.qp.post_send(SendWR(1, sender.mr, 0, size, other.mr.addr, other.mr.rkey, signaled=signaled))
            posted += 1
        else:
            told += len(sender.cq.wait(num_entries=DEPTH))
    return time.process_time_ns() - before_ns


def measured(run: Callable[[Rig, int, int], float], size: int, repeat: int) -> tuple[float, float]:
    """Nanoseconds per write, of the program and of the NICs: the best of several."""
    timings = []
    for _ in range(repeat):
        with rig() as made:
            count, before_ns = COUNTS[size], time.process_time_ns()
            program_ns = run(made, size, count)
            timings.append((program_ns / count, (time.process_time_ns() - before_ns) / count))
    return min(program for program, _ in timings), min(nics for _, nics in timings)


def print_costs(repeat: int) -> None:
    """A row per library."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="measurements of each kind; the best counts (3)")
    print_costs(parser.parse_args().repeat)


if __name__ == "__main__":
    main()
