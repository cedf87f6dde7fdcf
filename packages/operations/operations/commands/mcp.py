"""`mrclab mcp`: incidents and rehearsals for agents, over the Model Context Protocol."""

from __future__ import annotations

import argparse
from functools import partial
from random import Random, SystemRandom

from cli import add, add_runs, handing_over
from operations.commands.incident import SECRET_SEEDS


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    mcp = add(subparsers, "mcp", mcp_command, __file__)
    mcp.add_argument("--seed", type=int, help="repeat a series of incidents (another one each time)")
    add_runs(mcp)


def mcp_command(arguments: argparse.Namespace) -> int:
    from common.seeds import Purpose, check_seed, derive

    try:
        from operations.mcp_server import server
    except ModuleNotFoundError as error:
        raise RuntimeError(f"mcp needs the Python package {error.name}: install mrclab-operations[mcp]") from None
    if arguments.seed is not None:
        check_seed(arguments.seed)
    rng = SystemRandom() if arguments.seed is None else Random(derive(arguments.seed, Purpose.SURVEY))
    seeds = partial(rng.randrange, SECRET_SEEDS)
    with handing_over(arguments.runs):
        server(arguments.runs, seeds).run("stdio")
    return 0
