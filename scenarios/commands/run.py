"""`mrclab run` and `mrclab list`."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from scenarios import library
from scenarios.commands.owner import hand_over
from scenarios.commands.root import need_root
from scenarios.judging.judge import judge
from scenarios.running import calibration
from scenarios.running.directory import RUNS, RunDirectory
from scenarios.running.emulated import EmulatedWorld
from scenarios.running.live import Watcher
from scenarios.running.processor import ProcessorSampler
from scenarios.running.rehearsal import rehearse
from scenarios.running.runner import Choices, Runner
from scenarios.running.simulated import SimulatedWorld
from scenarios.running.transport import TRANSPORTS, transport
from scenarios.scenario import Scenario
from topo.planfile import load_plan

BMV2_SWITCHES_MAX = 40  # a process of some 33 MB and two busy threads each

EXAMPLES = """examples:
  ./lab run link-flap                        the main demonstration, about two minutes
  ./lab run link-flap --transport roce       the same faults under RoCE, on one plane
  ./lab run incast --set trimming.enabled=false
  ./lab run my_experiment.py --seed 7
exit status: 0 the verdict is true, 1 false, 3 unknown, 2 the run could not be made"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = subparsers.add_parser(
        "run",
        help="run a scenario, judge it, write a report",
        description="Bring a lab up, run a scenario in it, take it down, judge what happened.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("scenario", help="a name from 'list', or the path of a .py file of your own")
    run.add_argument("--transport", default="mrc", metavar="NAME", help=f"one of {', '.join(TRANSPORTS)} (mrc)")
    run.add_argument("--plan", metavar="PLAN", help="another plan than the scenario's: a name or a .toml file")
    run.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change one key of the plan")
    run.add_argument(
        "--setting", action="append", default=[], metavar="NAME=VALUE", help="a setting of the transport (selection=…)"
    )
    run.add_argument("--seed", type=int, help="repeat what chance decided (a new seed each time)")
    run.add_argument(
        "--world", choices=("emulated", "simulated"), default="emulated", help="Mininet, or virtual time without root"
    )
    run.add_argument("--rate", type=float, metavar="MBPS", help="rate of a NIC port; without it, calibrated")
    run.add_argument("--calibrate", action="store_true", help="measure this machine again first")
    run.add_argument(
        "--reconvergence", type=float, metavar="SECONDS", help="RoCE: routing avoids a dead link so long after it died"
    )
    run.add_argument("--time", type=float, default=1.0, metavar="FACTOR", help="stretch or shorten every phase (1)")
    run.add_argument("--runs", type=Path, default=RUNS, metavar="DIR", help="where runs are kept (runs/)")
    run.add_argument("--plain", action="store_true", help="print lines instead of the live view")
    run.set_defaults(run=run_command)

    listing = subparsers.add_parser(
        "list",
        help="the scenarios there are",
        description="The scenarios there are, with the plan and the length of each.",
        epilog="examples:\n  ./lab list\n  ./lab list --format json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    listing.add_argument("--format", choices=("text", "json"), default="text")
    listing.set_defaults(run=list_command)


def choose(scenario: Scenario, arguments: argparse.Namespace, tell: Callable[[str], None]) -> Choices:
    """The choices of a run from its arguments; ValueError says what is wrong with them."""
    if not 0 < arguments.time <= 100:
        raise ValueError(f"--time: a factor above 0 and up to 100 is wanted, not {arguments.time:g}")
    if arguments.seed is not None and not 0 <= arguments.seed < 1 << 63:
        raise ValueError(f"--seed: 0 to {(1 << 63) - 1} is wanted, not {arguments.seed}")
    if arguments.rate is not None and not 0.01 <= arguments.rate <= 100_000:
        raise ValueError(f"--rate: 0.01 to 100000 Mb/s is wanted, not {arguments.rate:g}")
    chosen = transport(arguments.transport, scenario.settings)
    if arguments.reconvergence is not None and not (chosen.single_plane and 0 <= arguments.reconvergence <= 60):
        raise ValueError("--reconvergence: 0 to 60 s, and only with a RoCE transport: MRC's tables never change")
    if arguments.setting:
        settings = dict(parse_pair(text, "--setting", "selection=oblivious") for text in arguments.setting)
        chosen = replace(chosen, settings={**chosen.settings, **{k: json_or_text(v) for k, v in settings.items()}})
    simulated = arguments.world == "simulated"
    overrides = plan_overrides(arguments.set, simulated)
    plan_source = arguments.plan or usual_plan(scenario)
    plan = load_plan(plan_source, overrides)
    asked = any(text.startswith("switch=") for text in arguments.set)
    if plan.switch == "bmv2" and plan.switch_count > BMV2_SWITCHES_MAX and not asked:
        tell(f"{plan.switch_count} BMv2 processes are more than {BMV2_SWITCHES_MAX}: taking embedded switches instead")
        plan, overrides = replace(plan, switch="embedded"), {**overrides, "switch": "embedded"}
    calibrated: Mapping[str, Any]
    if arguments.rate is not None:
        calibrated = {"source": "--rate", "port_rate_bps": round(arguments.rate * 1e6)}
    elif simulated:
        calibrated = {"source": "the plan", "port_rate_bps": plan.links.host_rate_bps}
    else:
        calibrated = calibration.calibrated(plan, tell, arguments.calibrate)
    return Choices(
        transport=chosen,
        plan=plan.at_rate(calibrated["port_rate_bps"]),
        seed=arguments.seed if arguments.seed is not None else secrets.randbelow(1 << 31),
        world=arguments.world,
        time_factor=arguments.time,
        reconvergence_s=arguments.reconvergence,
        overrides=overrides,
        calibration=calibrated,
        source=arguments.scenario,
        plan_source=plan_source,
    )


def usual_plan(scenario: Scenario) -> str:
    """The scenario's own; MRCLAB_PLAN stands in for `lab` on a machine that is too small for it."""
    return os.environ.get("MRCLAB_PLAN", scenario.plan) if scenario.plan == "lab" else scenario.plan


def plan_overrides(texts: Sequence[str], simulated: bool) -> dict[str, str]:
    """Keys of the plan to change: the switch kind of MRCLAB_SWITCH, and then those of --set.

    In virtual time every switch is an embedded one.
    """
    kind = "embedded" if simulated else os.environ.get("MRCLAB_SWITCH")
    chosen = dict(parse_pair(text, "--set", "trimming.enabled=false") for text in texts)
    return {**({"switch": kind} if kind else {}), **chosen}


def json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def parse_pair(text: str, option: str, example: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ValueError(f"{option}: NAME=VALUE is wanted, such as {example}, not {text!r}")
    return key, value


def run_command(arguments: argparse.Namespace) -> int:
    scenario = library.find(arguments.scenario)
    if arguments.world == "emulated":
        need_root(f"run {scenario.name} builds network namespaces")
    console = Console()
    choices = choose(scenario, arguments, lambda line: console.print(line, highlight=False))
    rehearse(scenario, choices)
    directory = RunDirectory.create(arguments.runs, scenario.name, choices.seed)
    simulated = choices.world == "simulated"
    kind = SimulatedWorld if simulated else EmulatedWorld
    with Watcher(console, scenario, directory, plain=arguments.plain) as watcher:
        runner = Runner(scenario, choices, directory, watcher.tell)
        watcher.options(runner.options())
        make_world = partial(kind, choices.running_plan, choices.transport, choices.seed, directory, watcher.tell)
        try:
            runner.run(make_world, None if simulated else ProcessorSampler)
        finally:
            # An interrupted run is judged too: it is unknown, and its directory opens like any other.
            verdict = judge(directory.path, list(scenario.checks(runner.setting)), scenario.story)
            hand_over(arguments.runs, calibration.cache_file().parent)
    sys.stdout.write("\n" + (directory.path / "summary.txt").read_text())
    sys.stdout.write(f"\nreport: {directory.path / 'report.html'}\n")
    return verdict.exit_status


def list_command(arguments: argparse.Namespace) -> int:
    found = library.scenarios()
    if arguments.format == "json":
        rows = [
            {"name": s.name, "title": s.title, "plan": s.plan, "seconds": sum(p.seconds for p in s.phases)}
            for s in found
        ]
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return 0
    table = Table(box=None, pad_edge=False)
    for column in ("scenario", "plan", "seconds", "what it shows"):
        table.add_column(column)
    for scenario in found:
        table.add_row(scenario.name, scenario.plan, f"{sum(p.seconds for p in scenario.phases):.0f}", scenario.title)
    Console().print(table)
    return 0
