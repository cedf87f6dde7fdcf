"""`mrclab trace`: one packet, hop by hop, through every switch's tables."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cli.command_table import add
from common.terminal.printable import printable_text
from common.terminal.source_names import shown
from common.terminal.standard_streams import write_out
from running.view import attached, chosen_path, journey_json
from topo import load_plan
from topo.emulation import NoLabError, labname
from topo.emulation.labname import DEFAULT_LAB
from topo.fault import Condition, arrival
from topo.path import Path
from topo.summaries import FIRST_EV, HOST

if TYPE_CHECKING:
    from running.tracing import Explainer, Journey


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    trace = add(subparsers, "trace", trace_command, __file__)
    trace.add_argument("source", help=HOST)
    trace.add_argument("destination", help="another host")
    trace.add_argument("--ev", help=FIRST_EV)
    trace.add_argument("--plan", metavar="PLAN", help="a plan instead of the running lab: a name or a .toml file")
    trace.add_argument("--size", type=int, default=64, metavar="BYTES", help="payload (64)")
    trace.add_argument("--full", action="store_true", help="every step of every switch")
    trace.add_argument("--format", choices=("text", "json"), default="text")
    labname.add_option(trace)


def trace_command(arguments: argparse.Namespace) -> int:
    # Late: the compiler and P4Runtime's messages, which the help does not need.
    from running.tracing import PlanExplainer, data_frame, follow

    explainer: Explainer
    if arguments.plan is not None:
        plan = load_plan(arguments.plan)
        explainer, where = PlanExplainer(plan), f"plan {plan.name}"
    else:
        try:
            view = attached()
            plan, explainer, where = view.plan, view, f"the running lab ({view.plan.name})"
        except NoLabError:
            if labname.chosen() != DEFAULT_LAB:
                raise
            plan = load_plan("lab")
            explainer, where = PlanExplainer(plan), "plan lab (no lab is running)"
    if not 0 <= arguments.size <= plan.packets.pmtu_bytes:
        raise ValueError(f"--size must be between 0 and {plan.packets.pmtu_bytes} bytes (got {arguments.size})")
    path = chosen_path(plan, arguments.source, arguments.destination, arguments.ev)
    frame = data_frame(plan, path, arguments.size)
    journey = follow(plan, explainer, path, frame)
    if arguments.format == "json":
        write_out(json.dumps(journey_json(path, journey), indent=2) + "\n")
    else:
        text = "\n".join(as_text(path, where, frame, journey, arguments.full))
        write_out(printable_text(shown(text, plan.names)) + "\n")
    return 0 if journey.reached == path.destination else 1


def as_text(path: Path, where: str, frame: bytes, journey: Journey, full: bool) -> list[str]:
    """A line for each thing that happens to the packet; each fault stands where the packet meets it."""
    from running.tracing import hop_limit, outer_destination, tables_hit

    lines = [f"{path.source} → {path.destination} by EV {path.ev:#010x}, {len(frame)} bytes, in {where}"]
    lines.append(f"{path.source}  sends to {outer_destination(frame)}, hop limit {hop_limit(frame)}")
    lines += met(journey.start)
    for hop in journey.hops:
        lines.append(f"{hop.switch}  in by port {hop.port_in}")
        lines += met([c for c in hop.conditions if c.place == hop.switch.name and not c.ends])
        if full:
            lines += [f"      {line}" for line in hop.text.splitlines()]
        else:
            lines += [f"      {table}: {said}" for table, said in tables_hit(hop.steps)]
        if hop.port_out is None:
            lines.append(f"      DROPPED: {hop.reason}")
        else:
            destination = outer_destination(hop.frame_out)
            lines.append(f"      out by port {hop.port_out} to {destination}, hop limit {hop_limit(hop.frame_out)}")
        lines += met([c for c in hop.conditions if c.place != hop.switch.name])
    if journey.reached is None:
        return [*lines, "no host receives it"]
    share = arrival(journey.conditions)
    chance = "" if share == 1 else f", if it is not lost on the way: {share:.3g} of such packets are not"
    return [*lines, f"{journey.reached} receives {len(journey.hops[-1].frame_out)} bytes{chance}"]


def met(conditions: Sequence[Condition]) -> list[str]:
    """Faults as lines of a trace."""
    return [f"      {'LOST' if condition.ends else 'FAULT'}: {condition}" for condition in conditions]
