"""Compiles for a first run while packages are installed: the endpoint, quickly, and the switch's runtime.

    python -P -m cli.first_build PARENT AFTER

Ends with the process PARENT. AFTER is the process that installs C compilers. No package has to be there but those that
build the endpoint. The command itself makes, or explains, whatever fails here.
"""

import os
import select
import signal
import sys
from contextlib import suppress
from threading import Thread


def main(parent: int, after: int) -> None:
    """Both at once: mypy takes one processor."""
    from common.compiled.build import build
    from endpoint.compiled import UNIT
    from running.parallel import end_with_parent

    end_with_parent(signal.SIGTERM)
    os.kill(parent, 0)  # it may have ended before

    runtime = Thread(target=_runtime, args=(after,), daemon=True)
    runtime.start()
    build(UNIT, lambda what: print("mrclab:", what, file=sys.stderr), quick=True, after=after)
    runtime.join()


def _runtime(after: int) -> None:
    from switch.native import build_runtime

    with suppress(OSError):  # it has ended
        select.select([os.pidfd_open(after)], [], [])
    with suppress(Exception):
        build_runtime()


if __name__ == "__main__":
    with suppress(Exception):
        main(int(sys.argv[1]), int(sys.argv[2]))
