"""Every word of `./lab`: the place of its parser, its line in the help, and why it needs root.

Only the module of the word that was given is imported: `--help` and `status` need neither matplotlib nor gRPC.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """`place` is MODULE:FUNCTION; the function takes the subparsers and adds the word, perhaps with others.

    `root` says why root is needed before the command begins; "" when the command asks for root itself, or never.
    """

    place: str
    summary: str
    root: str = ""


LAB = "scenarios.commands.lab:register"

WORDS: Mapping[str, Word] = {
    "run": Word("scenarios.commands.run:register", "run a scenario, judge it, write a report"),
    "list": Word("scenarios.commands.list:register", "the scenarios there are"),
    "report": Word("scenarios.commands.report:register", "judge a run again and rewrite its report"),
    "compare": Word("scenarios.commands.compare:register", "runs on one page, such as MRC against RoCE"),
    "sweep": Word(
        "scenarios.commands.sweep:register", "a scenario on many seeds: shares and differences with intervals"
    ),
    "hunt": Word("scenarios.commands.hunt:register", "random faults until something breaks, made as small as it gets"),
    "reproduce": Word("scenarios.commands.reproduce:register", "the figures of the MRC paper, run here and compared"),
    "up": Word(LAB, "build a plan's fabric and leave it running", "up builds network namespaces"),
    "down": Word(LAB, "end the lab, from any state; nothing of it is left", "down removes network namespaces"),
    "status": Word(LAB, "what is running, since when, and with which faults"),
    "doctor": Word(LAB, "what this machine has, what each absence costs, how to mend it"),
    "shell": Word(
        LAB,
        "Mininet's prompt on the running lab, with the fault verbs",
        "the prompt runs commands in network namespaces",
    ),
    "fault": Word(LAB, "inject a fault into the running lab", "a fault changes links and switches"),
    "undo": Word(LAB, "undo the last fault, one by its number, or all", "mending a fault changes links and switches"),
    "paths": Word("topo.cli:add_paths", "the paths between two hosts: EV, plane, spine, uSIDs hop by hop"),
    "trace": Word("scenarios.commands.trace:register", "follow one packet through every switch's tables"),
    "capture": Word("scenarios.commands.capture:register", "capture packets on links of the running lab"),
    "traffic": Word(
        "scenarios.commands.traffic:register", "run a workload on the running lab, list what runs, stop it"
    ),
    "counters": Word(
        "scenarios.commands.counters:register",
        "what switches forwarded, trimmed, marked and dropped, by port, class and cause",
    ),
    "inspect": Word(
        "scenarios.commands.inspect:register",
        "nodes of the running lab: kinds, addresses, interfaces, namespaces, states",
    ),
    "exec": Word("scenarios.commands.exec:register", "run a command in a node's network namespace"),
    "graph": Word(
        "scenarios.commands.graph:register",
        "a picture of the running lab with its faults and load: SVG, PNG, DOT, Mermaid",
    ),
    "view": Word("scenarios.commands.view:register", "the lab in a browser: a plan, the running lab, a recorded run"),
    "export": Word("scenarios.commands.export:register", "a plan as JSON, or as SRv6 configuration for FRR or SONiC"),
    "topo": Word("topo.cli:register", "show, draw and count plans and paths"),
    "controller": Word("controller.cli:register", "install and check the switches' tables"),
    "compile": Word(
        "scenarios.commands.compile:register", "compile the endpoint, so that virtual time and agents run faster"
    ),
    "switch": Word("scenarios.commands.switch:register", "the P4 compiler and the embedded switch by themselves"),
}


def add(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    run: Callable[[argparse.Namespace], int],
    examples: str,
    description: str | None = None,
) -> argparse.ArgumentParser:
    """The parser of a word, with the word's own line in the help; `run` carries the word out."""
    parser = subparsers.add_parser(
        name,
        help=WORDS[name].summary,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser
