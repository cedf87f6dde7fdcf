"""`python -m topo`: the fabric alone. P4 switches stay without tables; the `mrclab` command installs them too."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from common.outcome import carry_out
from topo import cli
from topo.emulation import cli as emulation_cli


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m topo", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    cli.register(subparsers)
    emulation_cli.register(subparsers)
    namespace = parser.parse_args(arguments)
    return carry_out("topo", lambda: int(namespace.run(namespace)))


if __name__ == "__main__":
    sys.exit(main())
