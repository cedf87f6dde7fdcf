"""`mrclab up`, `down`, `status`, `doctor`, `shell`, `fault`, `undo`: the life cycle of a lab, in either world."""

from __future__ import annotations

import argparse
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from cli.command_table import add
from cli.options import seed_of
from cli.ownership import hand_over
from cli.prompt import FaultyLab, done, open_shell, parse_injection, show_faults, undo_faults
from cli.root import need_root
from common import files, plain_file
from common.client import ControlError
from common.pairs import parse_pairs
from common.terminal.columns import aligned
from common.terminal.source_names import shown
from running import view
from topo import Switch, load_plan
from topo.emulation import Lab, LabError, LabRunningError, Prerequisite, down, examine, labname, state
from topo.emulation.labname import DEFAULT_LAB, LabName
from topo.fault import VERBS, Fault, verb_table
from topo.plan import SWITCH_KINDS, SwitchKind, rate_of
from topo.planfile import check_pfc, shipped_plans, switch_of_environment
from topo.show import add_format, switch_words
from topo.summaries import SET

_HEAD = ("NAME", "PLAN", "STATE", "OWNER", "AGE", "RUN", "FAULTS")
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400


def rows() -> list[dict[str, Any]]:
    """Every lab on record as JSON: name, plan, state, owner, age in seconds, the run it is for, faults in force."""
    labs: list[dict[str, Any]] = []
    for name, record in state.records().items():
        if isinstance(record, LabError):
            labs.append({"name": name.text, "state": "unreadable", "error": str(record)})
            continue
        labs.append(
            {
                "name": name.text,
                "plan": record.plan.name,
                "state": "abandoned" if record.abandoned else "broken" if _is_broken(record) else record.phase,
                "owner": record.owner,
                "age_s": round(record.age_s, 1),
                "run": record.run,
                "faults": len(state.read_faults(name.root)),
            }
        )
    return labs


def _is_broken(record: state.LabState) -> bool:
    """Whether a lab that is up has lost switches or namespaces."""
    if record.phase != "running":
        return False
    status = Lab(record).status()
    return any(status[key] for key in LOST)


def table(labs: list[dict[str, Any]]) -> str:
    """The rows for people."""
    lines: list[tuple[str, ...]] = [_HEAD]
    for lab in labs:
        age = age_words(lab["age_s"]) if "age_s" in lab else ""
        cells = (lab.get(key, "") for key in ("name", "plan", "state", "owner"))
        lines.append((*map(str, cells), age, lab.get("run") or "-", str(lab.get("faults", ""))))
    return "\n".join(aligned(lines))


def age_words(age_s: float) -> str:
    """Such as 40 s, 12 min, 3.5 h, 2.0 days."""
    if age_s < 2 * _MINUTE_S:
        return f"{age_s:.0f} s"
    if age_s < 2 * _HOUR_S:
        return f"{age_s / _MINUTE_S:.0f} min"
    return f"{age_s / _HOUR_S:.1f} h" if age_s < 2 * _DAY_S else f"{age_s / _DAY_S:.1f} days"


def down_all(*, wait: bool = False) -> tuple[list[LabName], dict[LabName, str]]:
    """End every lab of this user; root itself, without sudo, ends those of all users.

    The names of the ended labs, and for each that stays, why it does.
    """
    me, all_users = state.user(), os.geteuid() == 0 and "SUDO_USER" not in os.environ
    ended: list[LabName] = []
    left: dict[LabName, str] = {}
    for name in labname.named():
        try:
            record = state.read_record(name.root)
        except LabError:
            record = None  # of another version: it has no owner that could be read
        if record is not None and not all_users and record.owner != me:
            left[name] = f"it is {record.owner or 'another user'}'s: down{name.option()} ends it"
            continue
        try:
            if down(name, wait=wait):
                ended.append(name)
        except LabError as error:
            left[name] = str(error)
    return ended, left


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands of a running lab."""
    _add_up(subparsers)

    end = add(subparsers, "down", run_down, __file__)
    end.add_argument("--wait", action="store_true", help="wait for an `up` that has not ended yet")
    end.add_argument("--all", action="store_true", help="every lab of yours (root: of all users)")
    labname.add_option(end)

    status = add(subparsers, "status", run_status, __file__)
    add_format(status)
    labname.add_option(status)

    add_format(add(subparsers, "doctor", run_doctor, __file__))

    shell = add(subparsers, "shell", run_shell, __file__)
    shell.add_argument("script", nargs="?", type=command_file, help="a file of commands instead of the keyboard")
    labname.add_option(shell)

    verbs = "\n".join(f"  {usage:36}{meaning}" for usage, meaning, *_ in verb_table())
    one_way = next(verb for verb in VERBS.values() if verb.one_way and verb.argument)
    fault = add(subparsers, "fault", run_fault, __file__, one_way=one_way.name, verbs=verbs)
    fault.add_argument(
        "verb", nargs="?", choices=("list", *VERBS), default="list", metavar="VERB", help="list: those in force"
    )
    fault.add_argument("words", nargs="*", metavar="TARGET [NUMBER]")
    fault.add_argument("--seed", type=int, default=0, help="the seed of random loss on embedded switches")
    add_format(fault)
    labname.add_option(fault)

    undo = add(subparsers, "undo", run_undo, __file__)
    undo.add_argument("which", nargs="?", metavar="NUMBER|all")
    labname.add_option(undo)


def _add_up(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    up = add(subparsers, "up", run_up, __file__)
    up.add_argument(
        "plan",
        nargs="?",
        default=os.environ.get("MRCLAB_PLAN", "lab"),
        help=f"{', '.join(shipped_plans())}, or a .toml file (%(default)s)",
    )
    up.add_argument("--switch", choices=SWITCH_KINDS, help="this kind of switch instead of the plan's")
    up.add_argument("--single-plane", action="store_true", help="the plan's single-plane equivalent (ECMP)")
    up.add_argument("--pfc", action="store_true", help="with --single-plane: lossless by flow control (802.1Qbb)")
    up.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=SET)
    up.add_argument("--rate", type=float, metavar="MBPS", help="this rate of host ports; delays scale along")
    up.add_argument(
        "--journals", type=Path, metavar="DIR", help="where switches, agents and faults write their journals"
    )
    up.add_argument("--world", choices=("emulated", "simulated"), help="real links, or virtual time (emulated)")
    up.add_argument("--seed", type=int, metavar="N", help="in virtual time: repeat random choices (1)")
    up.add_argument("--transport", metavar="NAME", help="in virtual time: of the hosts, such as mrc-cx8 (the plan's)")
    labname.add_option(up)


def run_up(arguments: argparse.Namespace) -> int:
    import controller  # late, like gRPC with it: the help needs neither

    plan = load_plan(arguments.plan, parse_pairs(arguments.set, "--set", "trimming.enabled=false"))
    kind: SwitchKind | None = arguments.switch or switch_of_environment()
    if kind:
        plan = replace(plan, switch=kind)
    if arguments.rate is not None:
        plan = plan.at_rate(rate_of(arguments.rate))
    if arguments.single_plane:
        plan = plan.single_plane()
    if arguments.pfc:
        plan = plan.with_pfc()
        check_pfc(plan)
    controller.check(plan)
    started, name = time.monotonic(), labname.chosen()
    called = f" as {name}" if name != DEFAULT_LAB else ""
    if arguments.world == "simulated":
        if arguments.journals or kind not in (None, "embedded"):
            raise ValueError("up --world simulated takes neither --journals nor a kind of switch: it has its own")
        made = view.up(plan, seed_of(1 if arguments.seed is None else arguments.seed), arguments.transport)
        hand_over(made.root)
        print(f"{plan.name} is up{called} in virtual time, which stands still (./lab step): {made.status()['folder']}")
        return 0
    if arguments.seed is not None or arguments.transport:
        raise ValueError("--seed and --transport need --world simulated: on real links `traffic` has them")
    if view.find() is not None:
        raise LabRunningError(f"{name.describe()} is there already, in virtual time: `down{name.option()}` ends it")
    if arguments.journals:
        files.make_folder(arguments.journals)
        arguments.journals = plain_file.followed(arguments.journals)
    with shown_progress() as progress:
        Lab.up(plan, provision=install, progress=progress, journals=arguments.journals)
    took_s = time.monotonic() - started
    print(f"{plan.name} is up{called} after {took_s:.1f} s: {plan.host_count} hosts, {switch_words(plan)}")
    return 0


def run_down(arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    if arguments.all:
        return _down_all(arguments.wait)
    name, lab = labname.chosen(), view.find()
    if lab is not None:
        lab.end()
    ended = lab is not None or down(name, wait=arguments.wait)
    none = "no lab was running" if name == DEFAULT_LAB else f"no lab of the name {name} was running"
    print(f"{name.describe()} is down after {time.monotonic() - started:.1f} s" if ended else none)
    return 0


def _down_all(wait: bool) -> int:
    none = "no lab of yours was running"
    for virtual in view.up_here():
        none, words = "", LabName(virtual.name).describe()
        try:
            virtual.end()
        except (ControlError, LabError) as error:
            print(f"{words} stays: {error}", flush=True)
        else:
            print(f"{words} is down", flush=True)
    if labname.named():
        need_root("down removes network namespaces")
    ended, left = down_all(wait=wait)
    if ended or none:
        print(f"down: {', '.join(map(str, ended))}" if ended else none)
    for lab, why in left.items():
        print(f"{lab.describe()} stays: {why}")
    return 0


def run_status(arguments: argparse.Namespace) -> int:
    """The chosen lab in full; and, if there are others, a row for each lab of this machine."""
    if (lab := view.find()) is not None:
        told = lab.status()
        words = shown(_virtual_words(told), lab.plan.names)
        print(json.dumps(told, indent=1) if arguments.format == "json" else words)
        return 0
    name, there = labname.chosen(), rows()
    record = state.read_record(name.root)
    status: dict[str, Any] = {"phase": "none" if record is None else record.phase}
    if record is not None and record.phase == "running":
        status = Lab(record).status()
    if arguments.format == "json":
        print(json.dumps({**status, "labs": there}, indent=1))
    else:
        _show_record(record, name, status)
        if [row["name"] for row in there] not in ([], [name.text]):
            print("\nlabs on this machine:\n" + table(there))
    return 0 if status["phase"] == "running" and not any(status[key] for key in LOST) else 1


LOST = {"switches_silent": "switches that do not answer", "namespaces_missing": "namespaces gone"}
"""The losses by which a lab that is up counts as broken, by the key of its status."""


def _show_record(record: state.LabState | None, name: LabName, status: Mapping[str, Any]) -> None:
    if record is None:
        print("no lab is running" if name == DEFAULT_LAB else f"no lab of the name {name} is running")
        return
    print(record.describe())
    if record.run and record.starter_alive:
        print(f"a run is in progress: {record.run}")
    elif record.run:
        print(f"its run has died: {record.run}; `down{name.option()}` removes the rest")
    if record.phase != "running":
        print(
            "it is not ready"
            if record.starter_alive
            else "the process that brought it up has died: `down` removes the rest"
        )
        return
    processes = "" if status["processes"] is None else f", {status['processes']} processes"
    print(f"{status['hosts']} hosts, {status['switches']} switches{processes}")
    if status["closed"]:
        print(status["closed"])
    for key, what in LOST.items():
        if status[key]:
            print(shown(f"{what}: {', '.join(status[key])}", record.plan.names))
    hidden = "an incident: what is wrong is hidden (./lab incident --help)"
    in_force = "\n".join(f"fault: {text}" for text in status["faults"]) or "no fault in force"
    print(hidden if status["sealed"] else shown(in_force, record.plan.names))


def _virtual_words(status: Mapping[str, Any]) -> str:
    now, until = (f"{status[key] / 1e6:,.3f} ms" for key in ("now_ns", "until_ns"))
    passes = f"passes until {until}" if status["until_ns"] > status["now_ns"] else "stands still"
    faults = [f"fault: {words}" for words in status["faults"]] or ["no fault in force"]
    first = f"plan {status['plan']!r} in virtual time, which {passes}; it is {now}"
    return "\n".join([first, f"{status['hosts']} hosts, {status['switches']} switches; {status['folder']}", *faults])


def run_doctor(arguments: argparse.Namespace) -> int:
    findings = [*examine(), endpoint_form()]
    missing = [finding for finding in findings if finding.need == "needed" and not finding.present]
    if arguments.format == "json":
        print(json.dumps([asdict(finding) for finding in findings], indent=1))
        return 1 if missing else 0
    for finding in findings:
        if finding.present:
            print(f"ok       {finding.name}" + (f" ({finding.detail})" if finding.detail else ""))
        else:
            mark = "MISSING" if finding.need == "needed" else "absent "
            print(f"{mark}  {finding.name}: {finding.cost}. {finding.remedy}")
    return 1 if missing else 0


def command_file(name: str) -> str:
    """The name of a file that can be read, FIFOs included. Checked with the options, before root is asked for."""
    try:
        mode = os.stat(name).st_mode
        why = "a directory" if stat.S_ISDIR(mode) else "" if os.access(name, os.R_OK) else "permission denied"
    except OSError as error:
        why = plain_file.why(error)
    if why:
        raise argparse.ArgumentTypeError(f"must be a file of commands (got {name}: {why})")
    return name


def run_shell(arguments: argparse.Namespace) -> int:
    open_shell(Lab.attach(provision=install), arguments.script)
    return 0


def attach() -> FaultyLab:
    """The chosen lab, in virtual time or on real links."""
    return view.find() or Lab.attach(provision=install)


def run_fault(arguments: argparse.Namespace) -> int:
    lab = attach()
    if arguments.verb == "list":
        in_force = [fault_json(fault) for fault in lab.faults()]
        listed = shown(show_faults(lab), lab.plan.names)
        print(json.dumps(in_force, indent=1) if arguments.format == "json" else listed)
        return 0
    target, value = parse_injection(arguments.words, arguments.verb)
    fault = lab.inject(arguments.verb, target, value, arguments.seed)
    if arguments.format == "json":
        print(json.dumps(fault_json(fault), indent=1))
    else:
        print(shown(done(fault), lab.plan.names))
    return 0


def fault_json(fault: Fault) -> dict[str, Any]:
    """A fault with the unit of its number."""
    argument = VERBS[fault.verb].argument
    number = {} if argument is None else {"value": fault.value, "unit": argument.name}
    return {"verb": fault.verb, "target": fault.target, **number, "lasting": VERBS[fault.verb].lasting}


def run_undo(arguments: argparse.Namespace) -> int:
    lab = attach()
    print(shown(undo_faults(lab, arguments.which), lab.plan.names))
    return 0


@contextmanager
def shown_progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar a phase on a terminal; nothing elsewhere."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    from common.terminal.console import LastingConsole  # late, like rich above: only `up` draws

    columns = (TextColumn("{task.description:16}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console, disabled = LastingConsole(file=sys.stderr), not sys.stderr.isatty()
    with Progress(*columns, console=console, transient=True, disable=disabled) as bars:
        tasks: dict[str, TaskID] = {}

        def update(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield update


def install(lab: Lab, switches: Sequence[Switch]) -> None:
    """Static tables over P4Runtime. gRPC is imported only where there are tables to install."""
    import controller

    controller.provision(lab, switches)


def endpoint_form() -> Prerequisite:
    """Whether the endpoint runs compiled; if not, why, and whether this machine could compile it."""
    from common.compiled import build, finder
    from endpoint import compiled

    form, why, remedy = compiled.FORM, compiled.FORM.why, finder.REMEDY
    if not form.compiled:
        try:
            build.compilers()
        except build.ExtensionBuildError as error:
            why, remedy = f"{why}; {error}", f"then {remedy}"
    cost = f"virtual time and agents take longer, nothing else ({why})"
    return Prerequisite("endpoint compiled", form.compiled, "useful", cost, remedy, form.why if form.compiled else "")
