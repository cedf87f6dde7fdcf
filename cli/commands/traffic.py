"""`mrclab traffic`: workloads on the running lab, in front or in the background."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cli.command_table import add
from cli.options import check_seconds
from cli.root import need_root
from common.interrupts import held_back
from common.pairs import json_or_text, parse_pairs
from common.quoting import quoted
from common.terminal.columns import aligned
from common.terminal.printable import printable
from topo.emulation import labname

if TYPE_CHECKING:
    from cli.traffic import Traffic
    from endpoint import WorkloadGroup
    from running.view import LabView

LOOK_S, VIRTUAL_LOOK_S = 0.25, 0.01
USUAL_S = 10.0


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    traffic = add(subparsers, "traffic", traffic_command, __file__)
    traffic.add_argument("what", metavar="KIND|list|stop|kinds|agents")
    traffic.add_argument("words", nargs="*", metavar="HOST|NAME=VALUE", help="or, for stop, names of traffic, or all")
    traffic.add_argument(
        "--seconds", type=float, metavar="S", help="how long (10 for a workload that does not end by itself)"
    )
    traffic.add_argument("--background", action="store_true", help="keep it running; `stop` ends it")
    traffic.add_argument("--as", dest="called", metavar="NAME", help="what to call it (the kind)")
    traffic.add_argument("--transport", metavar="NAME", help="of the agents, if there are none yet (mrc)")
    traffic.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE", help="of the transport")
    traffic.add_argument("--seed", type=int, default=1)
    traffic.add_argument("--format", choices=("text", "json"), default="text")
    labname.add_option(traffic)


def traffic_command(arguments: argparse.Namespace) -> int:
    from cli.traffic import Traffic
    from running.view import attached

    check_seconds("--seconds", arguments.seconds)
    if arguments.what == "kinds":
        return kinds_command(arguments)
    lab = attached()
    if not lab.virtual_time:
        need_root("traffic talks to agents, which run as root")
    with Traffic(lab) as traffic:
        if arguments.what == "list":
            return list_command(traffic, arguments)
        if arguments.what == "stop":
            return stop_command(traffic, arguments)
        if arguments.what == "agents":
            return agents_command(traffic, arguments)
        return start_command(traffic, arguments)


def kinds_command(arguments: argparse.Namespace) -> int:
    """Every workload with its options and their defaults."""
    from endpoint.workloads import defaults

    known = defaults()
    if arguments.format == "json":
        sys.stdout.write(json.dumps(known, indent=1) + "\n")
        return 0
    rows = [[kind, " ".join(f"{name}={value}" for name, value in options.items())] for kind, options in known.items()]
    sys.stdout.write("\n".join(aligned([["KIND", "OPTIONS"], *rows])) + "\n")
    return 0


def start_command(traffic: Traffic, arguments: argparse.Namespace) -> int:
    from cli.traffic import check

    kind = arguments.what
    ranks = [traffic.view.plan.host(word).name for word in arguments.words if "=" not in word]
    pairs = parse_pairs((word for word in arguments.words if "=" in word), kind, "size=65536")
    options: dict[str, Any] = {name: json_or_text(value) for name, value in pairs.items()}
    check(kind, ranks, options)
    limited(kind, options, arguments.seconds, arguments.background)
    start_agents(traffic, arguments)
    name = arguments.called or kind
    if arguments.background:
        with held_back():
            traffic.start(name, kind, ranks, options)
        at = labname.chosen().option()
        on = printable(f"{name} runs on {' '.join(ranks)}")
        sys.stdout.write(f"{on}: ./lab traffic{at} list, ./lab traffic{at} stop {quoted(name)}\n")
        return 0
    started = False
    try:
        with held_back():  # or it would run on unknown
            group = traffic.start(name, kind, ranks, options)
            started = True
        watch(group, traffic.view)
    finally:
        if started:
            with held_back():  # a second Ctrl-C must end it as well
                statuses = traffic.stop(traffic.find(name))
    return report(statuses, arguments.format)


def start_agents(traffic: Traffic, arguments: argparse.Namespace) -> None:
    from endpoint import plugins

    pairs = parse_pairs(arguments.setting, "--setting", "selection=oblivious")
    settings = plugins.absolute({name: json_or_text(value) for name, value in pairs.items()})
    traffic.ensure_agents(arguments.transport, settings, arguments.seed)


def agents_command(traffic: Traffic, arguments: argparse.Namespace) -> int:
    """An agent in every host, and nothing for it to do: programs reach it over uverbs (docs/uverbs.md)."""
    if arguments.words:
        raise ValueError(f"traffic agents takes no further words (got {arguments.words[0]!r})")
    start_agents(traffic, arguments)
    there = traffic.clients[next(iter(traffic.clients))].call("ping")["transport"]
    sys.stdout.write(f"agents run in {len(traffic.clients)} hosts, transport {there}\n")
    return 0


def limited(kind: str, options: dict[str, Any], seconds: float | None, background: bool) -> None:
    """Put into the options when the workload ends: after `seconds`, by its own count, or never in the background."""
    from endpoint.workloads import defaults

    known = defaults()[kind]
    if seconds is not None:
        if "duration_ns" not in known:
            raise ValueError(f"--seconds {seconds:g}: {kind} ends by its own count")
        options["duration_ns"] = round(seconds * 1e9)
        count = "steps" if "steps" in known else "rounds"
        if count in known:
            options.setdefault(count, 0)  # the time alone ends it
    counts = [name for name in ("messages", "rounds", "steps", "duration_ns") if name in known]
    if not background and "duration_ns" in known and not any(options.get(name, known[name]) for name in counts):
        options["duration_ns"] = round(USUAL_S * 1e9)


def watch(group: WorkloadGroup, view: LabView) -> None:
    """Returns when every rank is over; meanwhile a terminal shows in one line how much was verified."""
    from cli.traffic import OVER, verified

    while True:
        statuses = group.status()
        if all(status["state"] in OVER for status in statuses.values()):
            break
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{verified(statuses)[0] / 1e6:,.1f} MB verified\033[K")
            sys.stderr.flush()
        view.pass_time(VIRTUAL_LOOK_S if view.virtual_time else LOOK_S)
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")


def report(statuses: Mapping[str, Mapping[str, Any]], form: str) -> int:
    """The result of a workload; exit status 1 when a rank failed or bytes were wrong."""
    from cli.traffic import table, verified

    good, wrong = verified(statuses)
    failed = {host: status["cause"] for host, status in statuses.items() if status["state"] == "failed"}
    if form == "json":
        sys.stdout.write(json.dumps({"ranks": statuses, "bytes_verified": good, "bytes_wrong": wrong}, indent=1) + "\n")
    else:
        last = f"{good:,} bytes verified in memory, {wrong:,} wrong"
        sys.stdout.write("\n".join([*aligned(table(statuses)), last]) + "\n")
        for host, cause in failed.items():
            sys.stdout.write(f"{host} failed: {cause}\n")
    return 1 if wrong or failed else 0


def list_command(traffic: Traffic, arguments: argparse.Namespace) -> int:
    from cli.traffic import verified

    active: list[dict[str, Any]] = []
    for asked in traffic.asked():
        statuses = traffic.join(asked).status()
        good, wrong = verified(statuses)
        gone = set() if len(statuses) == len(asked.ranks) else {"agent ended"}
        states = ", ".join(sorted({status["state"] for status in statuses.values()} | gone))
        row = {"name": asked.name, "kind": asked.kind, "ranks": list(asked.ranks), "state": states}
        active.append({**row, "bytes_verified": good, "bytes_wrong": wrong, "options": dict(asked.options)})
    if arguments.format == "json":
        sys.stdout.write(json.dumps(active, indent=1) + "\n")
        return 0
    head = ["NAME", "KIND", "STATE", "VERIFIED", "WRONG", "HOSTS"]
    rows = [
        [r["name"], r["kind"], r["state"], f"{r['bytes_verified']:,}", f"{r['bytes_wrong']:,}", " ".join(r["ranks"])]
        for r in active
    ]
    agents = f"agents run in {len(traffic.clients)} hosts" if traffic.clients else "no agent runs"
    if lost := {
        host: n for host, client in traffic.clients.items() if (n := client.call("ping")["journal_lines_lost"])
    }:
        agents += f"; the disk took no journal lines of {', '.join(f'{host} ({n})' for host, n in lost.items())}"
    sys.stdout.write("\n".join([*(aligned([head, *rows]) if rows else ["no traffic"]), agents]) + "\n")
    return 0


def stop_command(traffic: Traffic, arguments: argparse.Namespace) -> int:
    names = arguments.words
    if not names:
        there = ", ".join(asked.name for asked in traffic.asked()) or "none"
        raise ValueError(f"traffic stop must be followed by a name, or all; running: {there}")
    everything = names == ["all"]
    chosen = traffic.asked() if everything else [traffic.find(name) for name in names]
    status = 0
    for asked in chosen:
        sys.stdout.write(f"{asked.name}:\n" if arguments.format == "text" else "")
        status = max(status, report(traffic.stop(asked), arguments.format))
    if everything:
        ended = traffic.end_agents()
        if arguments.format == "text":
            sys.stdout.write(f"ended {len(chosen)} workloads and {ended} agents\n")
    return status
