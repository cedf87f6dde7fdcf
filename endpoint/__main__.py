"""`python -m endpoint`: run an agent, or send one operation to a running one."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from common.client import ControlClient, ControlError
from common.outcome import error_line
from common.pairs import json_or_text, parse_pairs
from common.terminal.standard_streams import write_error
from endpoint import agent, factory
from endpoint.packet_sockets.driver import RING_BYTES


def main(arguments: list[str] | None = None) -> int:
    """`python -m endpoint`: run the agent of one or several hosts until it is told to end. Exit status."""
    parser = argparse.ArgumentParser(prog="python -m endpoint", description="MRC endpoints in software")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser(
        "agent", help="be the NIC of this network namespace and run workloads; with --netns, of one or several others"
    )
    run.add_argument("--profile", required=True, action="append", help="NIC profile, JSON; repeatable, a host each")
    run.add_argument("--socket", required=True, action="append", help="Unix socket for control; one per profile")
    run.add_argument("--journal", required=True, action="append", help="file for journal lines; one per profile")
    run.add_argument(
        "--netns", action="append", metavar="NAME", help="network namespace of the host; one per profile (this one)"
    )
    run.add_argument(
        "--journal-bytes", type=int, default=0, metavar="N", help="keep two files of N bytes (0: no limit)"
    )
    run.add_argument(
        "--sample-ms", type=int, default=100, metavar="N", help="milliseconds between samples (100; 0: none)"
    )
    run.add_argument("--transport", default="mrc", choices=factory.NAMES)
    run.add_argument("--seed", type=int, default=1)
    run.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the transport")
    run.add_argument("--ring-bytes", type=int, default=RING_BYTES, help="receive ring of each port")
    run.add_argument(
        "--moderation-ns",
        type=int,
        help="sleep this long after frames have moved, then take all that came (default: from the profile)",
    )
    run.add_argument("--exit-with-parent", action="store_true")
    control = commands.add_parser("control", help="send one operation to an agent and print its result")
    control.add_argument("socket", type=Path)
    control.add_argument("op")
    control.add_argument("arguments", nargs="*", metavar="NAME=VALUE", help="values are JSON, or else plain words")
    options = parser.parse_args(arguments)
    try:
        if options.command == "control":
            with ControlClient(options.socket, timeout_s=3600) as client:
                result = client.call(options.op, **_pairs(options.arguments, "an argument", "name=blue"))
            print(json.dumps(result, indent=1))
            return 0
        return agent.run(
            agent.AgentOptions(
                hosts=_hosts(options),
                journal_bytes=options.journal_bytes,
                sample_ns=options.sample_ms * 1_000_000,
                transport=options.transport,
                seed=options.seed,
                settings=_pairs(options.set, "--set", "selection=oblivious"),
                ring_bytes=options.ring_bytes,
                moderation_ns=options.moderation_ns,
                exit_with_parent=options.exit_with_parent,
            )
        )
    except (ControlError, OSError, ValueError, RuntimeError) as error:
        write_error(f"endpoint {options.command}: {error_line(error)}")
        return 2


def _hosts(options: argparse.Namespace) -> list[agent.HostFiles]:
    """ValueError unless each profile has a socket, a journal and, among several, a namespace."""
    count = len(options.profile)
    netns = options.netns or [""]
    for name, given in (("--socket", options.socket), ("--journal", options.journal), ("--netns", netns)):
        if len(given) != count:
            raise ValueError(f"{name} must be given once per --profile: {count} times (got {len(given)})")
    return [
        agent.HostFiles(*words) for words in zip(options.profile, options.socket, options.journal, netns, strict=True)
    ]


def _pairs(words: list[str], what: str, example: str) -> dict[str, Any]:
    return {name: json_or_text(value) for name, value in parse_pairs(words, what, example).items()}


if __name__ == "__main__":
    sys.exit(main())
