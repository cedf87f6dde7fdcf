"""`mrclab controller push`, `verify`, `show` and `shell`: the options of `controller/cli.py`.

Only the standard library is imported here: options are checked before gRPC and protobuf are installed.
"""

import argparse
from pathlib import Path
from typing import Any

from cli.command_table import COMMANDS
from common.outcome import error_line
from common.terminal.standard_streams import write_error
from topo.emulation import labname

EXAMPLES = """\
examples:
  ./lab controller push                         every switch of the running lab: pipelines, entries, read back
  ./lab controller verify                       exit status 1 and the differences when anything differs
  ./lab controller verify p0l0 p0s1             only these switches
  ./lab controller show p1l2                    the entries of the switch now
  ./lab controller show p1l2 --planned          the entries that the plan gives it; needs no lab with --plan
  ./lab controller shell p1l2                   p4runtime-shell on that switch
  ./lab controller push --plan tiny --addresses switches.json --pipelines out/

Without --addresses the running lab is used. An addresses file is JSON:
  {"p0l0": {"grpc": "127.0.0.1:9559", "device_id": 1}, "p0l1": …}
"""


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "controller",
        help=COMMANDS["controller"].summary,
        description="Static tables from the plan, over P4Runtime. Holds no connection afterwards.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    labname.add_option(parser)
    commands = parser.add_subparsers(dest="controller_command", required=True, metavar="COMMAND")
    for name, function, summary in (
        ("push", "run_push", "load pipelines and entries, read everything back and compare"),
        ("verify", "run_verify", "read everything back and compare; exit 1 when anything differs"),
        ("show", "run_show", "print a switch's entries"),
        ("shell", "run_shell", "open p4runtime-shell on a switch"),
    ):
        command = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        labname.add_option(command)
        command.add_argument("--plan", metavar="NAME|FILE", help="a plan, instead of the running lab's")
        command.add_argument("--addresses", type=Path, metavar="FILE", help="JSON: where the switches are")
        command.add_argument("--pipelines", type=Path, metavar="DIR", help="compiled programs, instead of p4/'s")
        command.add_argument("--format", choices=("text", "json"), default="text")
        if name in ("push", "verify"):
            command.add_argument("switches", nargs="*", metavar="SWITCH", help="only these (default: all)")
            command.add_argument("--journal", type=Path, metavar="FILE", help="append `tables` lines to this journal")
        else:
            command.add_argument("switch", metavar="SWITCH", help="such as p1l2")
        if name == "show":
            command.add_argument(
                "--planned", action="store_true", help="what the plan wants, without asking the switch"
            )
        if name == "shell":
            command.add_argument("words", nargs="*", metavar="WORD", help="after --: further words for p4runtime-shell")
        command.set_defaults(run=_guarded(function))


def _guarded(function: str) -> Any:
    """A function of `controller/cli.py`; known errors become one line and exit status 2."""

    def run(options: argparse.Namespace) -> int:
        from controller import cli

        try:
            status: int = getattr(cli, function)(options)
        except BrokenPipeError:
            raise  # the reader has gone, such as `| head`: no fault of this command
        except (OSError, ValueError, RuntimeError) as error:
            write_error(f"controller {options.controller_command}: {error_line(error)}")
            return 2
        return status

    return run
