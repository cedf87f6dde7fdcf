"""`mrclab graph`: a picture of the running lab, or of a plan, with what is broken and how loaded each link is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from cli.command_table import add
from cli.options import check_seconds
from common import files
from common.terminal.printable import path_line
from common.terminal.standard_streams import write_error
from running.view import LabView, attached, find
from topo import load_plan
from topo.emulation import labname, state
from topo.graph import link_at, peer, ports
from topo.pictures.graph import Graph, dot, graph_of, mermaid

SUFFIXES = {".svg": "svg", ".png": "png", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid", ".mermaid": "mermaid"}
Load = Mapping[frozenset[str], float]


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    graph = add(subparsers, "graph", graph_command, __file__)
    graph.add_argument("plan", nargs="?", metavar="PLAN", help="a plan instead of the running lab")
    graph.add_argument("-o", "--output", type=Path, metavar="FILE")
    graph.add_argument("--format", choices=("svg", "dot", "mermaid"), help="what to print without -o (dot)")
    graph.add_argument("--load", type=float, metavar="S", help="watch the links for S seconds first")
    labname.add_option(graph)


def graph_command(arguments: argparse.Namespace) -> int:
    output: Path | None = arguments.output
    if output is not None and output.suffix not in SUFFIXES:
        raise ValueError(f"{output}: no picture of that name: valid are {', '.join(SUFFIXES)}")
    form = SUFFIXES[output.suffix] if output is not None else arguments.format or "dot"
    if arguments.format not in (None, form):
        raise ValueError(f"--format must be left out with -o {output}, which is {form} (got {arguments.format})")
    running = arguments.plan is None and (find() is not None or state.running_plan() is not None)
    check_seconds("--load", arguments.load)
    if arguments.load is not None and not running:
        raise ValueError("--load needs a running lab: it watches links, and a plan has none that carry anything")
    if running:
        view = attached()
        drawn = graph_of(view.plan, view.faults(), measured_load(view, arguments.load) if arguments.load else {})
    else:
        drawn = graph_of(load_plan(arguments.plan or "lab"))
        if arguments.plan is None:
            write_error("mrclab: no lab is running: this is the plan lab (./lab graph PLAN draws another)")
    written = rendered(drawn, form)
    if output is None:
        sys.stdout.write(written if isinstance(written, str) else written.decode())
    else:
        files.write_named(output, written)
        sys.stdout.write(path_line("wrote", output))
    return 0


def rendered(drawn: Graph, form: str) -> str | bytes:
    """The graph in one of its formats."""
    if form == "dot":
        return dot(drawn)
    if form == "mermaid":
        return mermaid(drawn)
    from topo.pictures import picture  # late: matplotlib

    return picture(drawn, form)


def measured_load(view: LabView, seconds: float) -> Load:
    """The load of each link, in its busier direction, as a share of its rate, over about so many seconds from now."""
    before, from_ns = view.managers(), view.now_ns()
    view.pass_time(seconds)
    after, to_ns = view.managers(), view.now_ns()  # a machine that stood still has waited longer
    load: dict[frozenset[str], float] = {}
    for switch in view.plan.switches():
        for ref in ports(view.plan, switch):
            old, new = (counted.get(switch.name, {}).get(ref.port) for counted in (before, after))
            if old is None or new is None:
                continue
            names = frozenset((switch.name, peer(view.plan, ref).node.name))
            for way in ("tx_bytes", "rx_bytes"):
                share = (new[way] - old[way]) * 8e9 / (to_ns - from_ns) / link_at(view.plan, ref).rate_bps
                load[names] = max(load.get(names, 0.0), share)
    return load
