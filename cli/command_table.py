"""Every command of `./lab`: the place of its parser, its line in the help, and why it needs root.

Commands of packages are entry points of the group `mrclab.commands`: MODULE:NAME of a CommandEntry.

Only the module of the command that was given is imported: `--help` and `status` need neither matplotlib nor gRPC.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from common.door import added, of_packages, thing
from topo.summaries import SUMMARIES


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """`place` is MODULE:FUNCTION, or else the folder of `cli.commands` that has a module with the command's name and a
    function `register`; the function takes the subparsers and adds the command, perhaps with others. `needs` names what
    the command needs of the machine beside Python: `compiler`, `headers` (of Python, to compile extensions),
    `extensions` (the same where they can be had: long runs in virtual time compile the endpoint), `network` (namespaces
    and Mininet), `tcpdump`.

    `root` says why root is needed before the command begins; "" when the command asks for root itself, or never.
    """

    summary: str
    place: str = ""
    root: str = ""
    needs: tuple[str, ...] = ()


GROUP = "mrclab.commands"
LAB = "cli.commands.lab:register"
SEEDS = "seeds"  # a folder
COMPILER = ("compiler",)
FABRIC = ("compiler", "network")
VIRTUAL = ("compiler", "extensions")

COMMANDS: Mapping[str, CommandEntry] = {
    "run": CommandEntry("run a scenario, judge it, write a report", needs=("compiler", "extensions", "network")),
    "list": CommandEntry("list the scenarios"),
    "report": CommandEntry("judge a run again and rewrite its report"),
    "compare": CommandEntry("runs on one page, such as MRC against RoCE"),
    "sweep": CommandEntry(
        "a scenario on many seeds: shares and differences with intervals",
        place=SEEDS,
        needs=("compiler", "extensions", "network"),
    ),
    "contest": CommandEntry(
        "algorithms on the same seeds: differences with intervals, and ranks", SEEDS, needs=VIRTUAL
    ),
    "hunt": CommandEntry("random faults until something breaks, made as small as it gets", SEEDS, needs=VIRTUAL),
    "up": CommandEntry("build a plan's fabric and leave it running", LAB, "up builds network namespaces", FABRIC),
    "down": CommandEntry("tear the lab down, in any state", LAB, "down removes network namespaces"),
    "status": CommandEntry("what is running, since when, and with which faults", LAB),
    "doctor": CommandEntry("check this machine's prerequisites, and how to install what is missing", LAB),
    "shell": CommandEntry(
        "Mininet's prompt on the running lab, with the fault verbs",
        LAB,
        "the prompt runs commands in network namespaces",
        FABRIC,
    ),
    "fault": CommandEntry("inject a fault into the running lab", LAB, "a fault changes links and switches"),
    "undo": CommandEntry(
        "undo the last fault, one by its number, or all", LAB, "undoing a fault changes links and switches"
    ),
    "paths": CommandEntry(SUMMARIES["paths"], "topo.cli:add_paths"),
    "trace": CommandEntry("follow one packet through every switch's tables"),
    "capture": CommandEntry("capture packets on links of the running lab", needs=("tcpdump",)),
    "step": CommandEntry("let time pass in a lab in virtual time"),
    "traffic": CommandEntry("run a workload on the running lab, list what runs, stop it"),
    "counters": CommandEntry("what switches forwarded, trimmed, marked and dropped, by port, class and cause"),
    "metrics": CommandEntry("the running lab's counters for Prometheus, on a loopback port"),
    "inspect": CommandEntry("nodes of the running lab: kinds, addresses, interfaces, namespaces, states"),
    "exec": CommandEntry("run a command in a node's network namespace"),
    "launch": CommandEntry("run a program as the ranks of a job, one process per host"),
    "graph": CommandEntry("a picture of the running lab with its faults and load: SVG, PNG, DOT, Mermaid"),
    "view": CommandEntry("the lab in a browser: a plan, the running lab, a recorded run"),
    "export": CommandEntry("a plan as JSON, FRR or SONiC configuration; a run as a Perfetto trace"),
    "topo": CommandEntry(SUMMARIES["topo"], "topo.cli:register"),
    "controller": CommandEntry("install and check the switches' tables"),
    "compile": CommandEntry(
        "compile the endpoint, so that virtual time and agents run faster", needs=("compiler", "headers")
    ),
    "switch": CommandEntry("the P4 compiler and the embedded switch by themselves", needs=COMPILER),
}


def entry(name: str) -> CommandEntry | None:
    """A command of the lab or of a package; None for none."""
    if name in COMMANDS:
        return COMMANDS[name]
    named = of_packages(GROUP).get(name) or added(GROUP).get(name)
    if named is None:
        return None
    command = thing(named)
    assert isinstance(command, CommandEntry), name
    return command


def commands() -> Mapping[str, CommandEntry]:
    """Every command, those of packages last."""
    every = {name: entry(name) for name in (*COMMANDS, *added(GROUP))}
    return {name: command for name, command in every.items() if command is not None}


def place(name: str) -> tuple[str, str]:
    """The module of a command's parser, and the function there."""
    command = entry(name)
    module, _, function = command.place.partition(":") if command else ("", "", "")
    if function:
        return module, function
    return ".".join(("cli.commands", *filter(None, [module]), name)), "register"


def add(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    run: Callable[[argparse.Namespace], int],
    file: str,
    **fields: object,
) -> argparse.ArgumentParser:
    """The parser of a command, with the command's line in the help; `run` carries the command out.

    `file` is the command's module, its `__file__`. NAME.txt beside it has the help's texts: a description, if there is
    one, and behind an empty line the examples. `fields` are put into them.
    """
    text = Path(file).with_name(f"{name}.txt").read_text().rstrip("\n")
    text = text.format(**fields) if fields else text
    description, mark, examples = f"\n\n{text}".partition("\n\nexamples:")
    parser = subparsers.add_parser(
        name,
        help=command.summary if (command := entry(name)) else None,
        description=description.lstrip("\n") or None,
        epilog=f"{mark}{examples}".lstrip("\n"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser
