"""The run of words of `./lab run`, as a user types them."""

import argparse
from collections.abc import Sequence

from cli.choosing import choose
from cli.commands.run import register
from running.spec import RunSpec


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """The arguments of `run_command`."""
    whole = argparse.ArgumentParser(prog="./lab", exit_on_error=False)
    register(whole.add_subparsers())
    return whole.parse_args(["run", *words])


def chosen(words: Sequence[str]) -> RunSpec:
    """The run that these words describe."""
    return choose(parsed(words))
