"""`mrclab incident`: a lab with a hidden fault, the tools to look for the fault, and the answer."""

from __future__ import annotations

import argparse
import json
import secrets
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from cli import add, add_json, add_runs, hand_over, hand_over_below, handing_over, need_root
from common.giving import opened_folder
from common.interpreter import become
from common.quoting import quoted
from common.terminal.printable import path_line
from common.terminal.source_names import of_options, shown
from common.terminal.standard_streams import write_error, write_out
from operations.incident.kind import check_level
from operations.incident.words import add_tools
from running import RunDirectory
from running.directory import RUNS
from topo import load_plan
from topo.emulation import labname, namespace

STATUS = {"right": 0, "wrong": 1, "partly right": 3, "given up": 3}
LEVEL = 1
SEEDS_MAX = 200
"""Of an export: its incidents follow each other within a day."""
SECRET_SEEDS = 1 << 53
"""Browsers show larger numbers rounded, and a page's seed must repeat its incident."""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    incident = add(subparsers, "incident", incident_command, __file__)
    incident.set_defaults(tool=None, json=False, runs=RUNS, check=lambda given: check_level(given.level))
    incident.add_argument("--seed", type=int, help="repeat an incident (a secret one each time)")
    incident.add_argument("--level", type=int, default=LEVEL, metavar="1..5", help="how hard it is (1)")
    incident.add_argument(
        "--plan", metavar="PLAN", help="hide it in another leaf-spine fabric, such as an imported one"
    )
    incident.add_argument(
        "--world",
        choices=("emulated", "simulated"),
        default="simulated",
        help="real links, or virtual time (simulated)",
    )
    labname.add_option(incident)
    _common(incident)
    words = incident.add_subparsers(metavar="TOOL")
    add_tools(words, _common)
    for name, text in (
        ("status", "the lab, its tickets, and the time and commands used"),
        ("kinds", "the kinds of faults that there may be"),
        ("view", "the run so far as one HTML file, without what is hidden"),
        ("answer", "end the incident with an answer"),
        ("end", "give up: end the incident, and see what was wrong"),
        ("scores", "the answers of a group and its score: a folder of --runs per person"),
        ("export", "incidents as cases of the benchmark OpenRCA: queries, telemetry and the truth"),
    ):
        parser = words.add_parser(name, help=text, description=text)
        parser.set_defaults(tool=name)
        _common(parser)
        if name == "export":
            parser.add_argument("folder", type=Path, metavar="DIR")
            parser.add_argument(
                "--level", type=int, dest="of_level", default=LEVEL, metavar="1..5", help="their level (1)"
            )
            parser.add_argument("--seeds", type=int, default=10, metavar="N", help="those of the seeds 1 to N (10)")
        if name == "kinds":
            parser.add_argument(
                "--level", type=int, dest="of_level", metavar="1..5", help="their level (default: the incident's)"
            )
        if name == "answer":
            parser.add_argument("named", nargs="+", metavar="COMPONENT KIND", help="one pair or several; or `none`")
            parser.add_argument("--because", default="", metavar="WHY", help="kept on the page")
        if name == "scores":
            parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="the --runs of a person")
        if name == "view":
            parser.add_argument("--export", type=Path, default=Path("incident-view.html"), metavar="FILE")


def _common(parser: argparse.ArgumentParser) -> None:
    """Options of the command and of each tool; `register` sets their defaults, so that neither hides the other's."""
    absent = argparse.SUPPRESS
    add_json(parser, absent)
    add_runs(parser, default=absent)


def incident_command(arguments: argparse.Namespace) -> int:
    from cli import refuse_second_lab
    from operations.incident.client import NoIncidentError, ask, newest, start

    if arguments.tool is None:
        seed = arguments.seed if arguments.seed is not None else secrets.randbelow(SECRET_SEEDS)
        if arguments.world == "emulated":
            need_root("an incident on real links builds network namespaces")
            refuse_second_lab()
        with suppress(NoIncidentError):
            write_error(f"{newest(arguments.runs)} is under way as well: commands look at the new one until it ends")
        plan = None if arguments.plan is None else load_plan(arguments.plan)
        directory = start(arguments.runs, seed, arguments.level, arguments.world, plan)
        hand_over(*directory.made)
        folder = directory.path
        return _say(arguments, {"folder": str(folder), **ask(folder, "status")}, "briefing", folder)
    if arguments.tool == "kinds" and arguments.of_level is not None:
        return _kinds(arguments, arguments.of_level)
    if arguments.tool == "scores":
        return _scores(arguments)
    if arguments.tool == "export":
        return _export(arguments)
    folder = newest(arguments.runs)
    if RunDirectory(folder).options()["world"] == "emulated":
        need_root("an incident on real links is looked at in network namespaces")
    if arguments.tool in ("answer", "end"):
        return _end(arguments, folder)
    match arguments.tool:
        case "status":
            return _say(arguments, {"folder": str(folder), **ask(folder, "status")}, "briefing", folder)
        case "kinds":
            return _kinds(arguments, int(ask(folder, "status")["level"]))
        case "view":
            return _view(arguments, folder)
        case _:
            return _tool(arguments, folder)


def _end(arguments: argparse.Namespace, folder: Path) -> int:
    """End the incident. The files that its process then writes are handed over, and nothing else in the folder."""
    from operations.incident.client import ask
    from operations.incident.page import WRITTEN

    with opened_folder(folder) as opened:
        try:
            if arguments.tool == "answer":
                document = ask(folder, "answer", named=arguments.named, because=arguments.because)
            else:
                document = ask(folder, "end")
        finally:
            hand_over_below(opened, *WRITTEN)
    _say(arguments, document, "result", folder)
    return STATUS[document["verdict"]]


def _say(arguments: argparse.Namespace, document: dict[str, Any], form: str, folder: Path | None = None) -> int:
    """Print a document; text has the names of the source of the incident in `folder`."""
    from operations.incident import text

    if arguments.json:
        _write([json.dumps(document, indent=1)])
    else:
        _write(getattr(text, form)(document), folder)
    return 0


def _kinds(arguments: argparse.Namespace, level: int) -> int:
    from operations.incident import text
    from operations.incident.kind import kinds_of

    check_level(level)
    rows = [{"kind": kind.name, "component": kind.component, "meaning": kind.meaning} for kind in kinds_of(level)]
    _write([json.dumps(rows, indent=1)] if arguments.json else text.kinds(level))
    return 0


def _scores(arguments: argparse.Namespace) -> int:
    from common import plain_file
    from operations.incident.session import ANSWER
    from running.directory import by_age

    rows = []
    for folder in arguments.folders:
        answers = [plain_file.read_object(run / ANSWER) for run in by_age(folder) if (run / ANSWER).exists()]
        name = str(folder)
        if not answers:
            raise ValueError(f"{name} must hold an incident that was answered: ./lab incident --runs {quoted(name)}")
        try:
            sums = {
                key: sum(float(answer[key]) for answer in answers) for key in ("points", "net", "commands", "lab_s")
            }
        except (KeyError, TypeError) as error:
            raise ValueError(f"{name}: an answer must have numbers of points, net, commands and lab_s") from error
        rows.append({"name": folder.name, "incidents": len(answers), **sums})
    return _say(arguments, {"people": rows}, "scores")


def _export(arguments: argparse.Namespace) -> int:
    from operations.incident import openrca

    check_level(arguments.of_level)
    if not 1 <= arguments.seeds <= SEEDS_MAX:
        raise ValueError(f"--seeds must be between 1 and {SEEDS_MAX} (got {arguments.seeds})")
    with handing_over(arguments.folder):
        cases = openrca.write(arguments.folder, range(1, arguments.seeds + 1), arguments.of_level)
    plain = path_line("wrote", arguments.folder, f", {cases} cases")
    write_out(json.dumps({"folder": str(arguments.folder), "cases": cases}) + "\n" if arguments.json else plain)
    return 0


def _view(arguments: argparse.Namespace, folder: Path) -> int:
    from page import export

    size = export.write([folder], arguments.export)
    told = {"file": str(arguments.export), "bytes": size}
    plain = path_line("wrote", arguments.export, f", {size / 1e6:.1f} MB")
    write_out(json.dumps(told) + "\n" if arguments.json else plain)
    return 0


def _tool(arguments: argparse.Namespace, folder: Path) -> int:
    from cli import show
    from operations.incident import text
    from operations.incident.client import ask, namespace_of
    from operations.incident.words import request

    tool, given = request(arguments)
    answer = ask(folder, "do", tool=tool, arguments=given, words="")
    if arguments.json and tool != "exec":
        _write([json.dumps({"tool": tool, **answer}, indent=1)])
        return 0
    result = answer["result"]
    if tool == "exec":
        return _execute(shlex.split(given["line"]), namespace_of(given["node"], str(result.get("namespace"))))
    if tool == "counters":
        names = of_options(RunDirectory(folder).options())
        show({name: result[name] for name in ("ports", "classes")}, "text", names)
    else:
        _write(text.SHOW[tool](result), folder)
    write_out(f"({text.used(answer)})\n", sys.stderr)
    return 0


def _execute(words: list[str], name: str) -> int:
    """Become the command that the user typed, in a network namespace."""
    with namespace.entered(name):
        return become(words)


def _write(lines: Sequence[str], folder: Path | None = None) -> None:
    names = {} if folder is None else of_options(RunDirectory(folder).options())
    write_out(shown("\n".join(lines) + "\n", names))
