"""`python -m topo`: the fabric alone. P4 switches stay without tables; the `mrclab` command installs them too."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from topo import cli
from topo.emulation import cli as emulation_cli


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m topo", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    cli.register(subparsers)
    emulation_cli.register(subparsers)
    namespace = parser.parse_args(arguments)
    try:
        status: int = namespace.run(namespace)
    except (ValueError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return status


if __name__ == "__main__":
    sys.exit(main())
