"""`mrclab-p4c`, or `python -m p4c`: compile one P4 program."""

import argparse
import sys
from collections.abc import Sequence

from common.outcome import carry_out
from p4c.frontend.cli import add_arguments, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 1 for a program with errors, 2 when nothing could be compiled."""
    text = "Compile P4_16 for v1model to BMv2 JSON and P4Info."
    parser = argparse.ArgumentParser(prog="mrclab-p4c", description=text)
    add_arguments(parser)
    return carry_out("mrclab-p4c", lambda: run(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
