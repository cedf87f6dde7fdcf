"""A P4 program with many constant entries, from its text to both engines: `switch_entries.py [--entries 30000]`.

A row per kind of key and number of entries: processor time of each step, and the most memory that the process had. Four
times the entries should take four times as long. A separate process measures each row.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from benchmarks.rig.many import many_entries
from p4c import Compilation
from p4c.model import load
from switch.native import NativeEngine, load_program
from switch.reference import ReferenceEngine

KINDS = ("exact", "lpm", "ternary", "range")
STEPS = ("compile", "load", "reference", "native")

T = TypeVar("T")


def row(kind: str, entries: int) -> dict[str, float]:
    """Processor seconds of each step, and megabytes."""
    taken: dict[str, float] = {}

    def step(name: str, work: Callable[[], T]) -> T:
        began_s = time.process_time()
        made = work()
        taken[name] = time.process_time() - began_s
        return made

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.p4"
        path.write_text(many_entries(entries, kind))
        compiled = step("compile", Compilation(path).run)
    program = step("load", lambda: load(compiled.json))
    step("reference", lambda: ReferenceEngine().load(program))
    load_program(program)  # its C is compiled by another process
    step("native", lambda: NativeEngine().load(program))
    return taken | {"megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=30_000)
    parser.add_argument("--row", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row is not None:
        print(json.dumps(row(arguments.row[0], int(arguments.row[1]))))
        return
    print(f"{'key':9}{'entries':>8}" + "".join(f"{name + ' s':>13}" for name in (*STEPS, "all")) + f"{'memory MB':>11}")
    for kind in KINDS:
        for entries in (arguments.entries // 4, arguments.entries):
            words = [sys.executable, __file__, "--row", kind, str(entries)]
            found = json.loads(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout)
            times = [found[name] for name in STEPS]
            shown = "".join(f"{seconds:13.2f}" for seconds in (*times, sum(times)))
            print(f"{kind:9}{entries:8}{shown}{found['megabytes']:11.0f}", flush=True)


if __name__ == "__main__":
    main()
