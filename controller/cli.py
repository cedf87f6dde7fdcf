"""The commands `controller push`, `verify`, `show` and `shell`, whose options are in `cli/commands/controller.py`."""

import argparse
import json
import os
import pwd
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common import plain_file
from common.terminal.counted import counted
from controller import words
from controller.client import Address
from controller.items import encode
from controller.pipelines import Pipelines, compiled_pipelines, read_pipelines
from controller.provisioning import addresses
from controller.push import Report, push, read_switch, verify
from controller.tables import tables
from topo import Plan, load_plan

__all__ = ["run_push", "run_shell", "run_show", "run_verify"]


class UsageError(ValueError):
    """The command line names something that does not exist; the message says what does."""


def run_push(options: argparse.Namespace) -> int:
    """`controller push`: install the entries of switches. Exit status."""
    return _report(options, push, "pushed")


def run_verify(options: argparse.Namespace) -> int:
    """`controller verify`: compare the entries of switches with the plan's. Exit status."""
    return _report(options, verify, "verified")


def _report(options: argparse.Namespace, function: Any, verb: str) -> int:
    plan, where = _fabric(options)
    where = _chosen(where, options.switches)
    report: Report = function(
        plan, where, pipelines=_pipelines(options), journal=options.journal, progress=_progress(options)
    )
    if options.format == "json":
        print(json.dumps({**asdict(report), "ok": report.ok}, indent=1))
    else:
        for difference in report.differences:
            print(difference)
        outcome = counted(len(report.differences), "difference") if report.differences else "no difference"
        print(
            f"{verb} {report.switches} switches, {report.entries} entries: {report.written} written, {outcome}, "
            f"{report.elapsed_ns / 1e9:.1f} s"
        )
    return 0 if report.ok else 1


def run_show(options: argparse.Namespace) -> int:
    """`controller show`: the items of one switch, read from it or planned. Exit status."""
    pipelines = _pipelines(options)
    if options.planned:
        plan = load_plan(options.plan) if options.plan else _fabric(options)[0]
        switch = plan.switch_node(options.switch)
        p4info = pipelines[switch.program].p4info
        items = [encode(p4info, entity) for entity in tables(plan, switch)]
    else:
        from topo.emulation import NoLabError

        try:
            plan, where = _fabric(options)
        except NoLabError as error:
            raise UsageError(f"{error}; --planned shows the entries of the plan without a lab") from None
        p4info = pipelines[plan.switch_node(options.switch).program].p4info
        (address,) = _chosen(where, [options.switch]).values()
        items = read_switch(options.switch, address, p4info)
    if options.format == "json":
        rows = [
            {"kind": i.kind, "key": words.key(p4info, i.entity), "value": words.value(p4info, i.entity)} for i in items
        ]
        print(json.dumps(rows, indent=1, ensure_ascii=False))
    else:
        for item in items:
            print(words.line(p4info, item.entity))
    return 0


def shell_python() -> Path:
    """The Python of p4runtime-shell, whose environment lies beside the lab's: the shell needs a protobuf of 2022."""
    lab = Path(sys.prefix)
    python = lab.with_name(f"{lab.name}-shell") / "bin/python"
    if not python.exists():
        raise UsageError(f"p4runtime-shell is not installed ({python}): ./lab controller shell installs it")
    return python


def run_shell(options: argparse.Namespace) -> int:
    """`controller shell`: become p4runtime-shell, connected to one switch."""
    _, where = _fabric(options)
    (address,) = _chosen(where, [options.switch]).values()
    command = [str(shell_python()), "-P", "-m", "p4runtime_sh", "--grpc-addr", address.target]
    command += ["--device-id", str(address.device_id)]
    if "--election-id" not in options.words:
        command += ["--election-id", "0,1"]
    sys.stdout.flush()
    environment = dict(os.environ)
    if os.geteuid() == 0:  # IPython runs what lies in HOME, which after `sudo -E` is another user's
        environment["HOME"] = pwd.getpwuid(0).pw_dir
        environment.pop("IPYTHONDIR", None)
    os.execve(command[0], [*command, *options.words], environment)


def _fabric(options: argparse.Namespace) -> tuple[Plan, Mapping[str, Address]]:
    """The plan, and where its switches are: from the command line or from the running lab."""
    if options.addresses is not None:
        if not options.plan:
            raise UsageError("--addresses needs --plan: which plan are these switches of?")
        return load_plan(options.plan), _read_addresses(options.addresses)
    from topo.emulation import Lab  # late: only this path needs a lab

    lab = Lab.attach()
    plan = load_plan(options.plan) if options.plan else lab.plan
    return plan, addresses(lab, plan.switches())


def _read_addresses(path: Path) -> dict[str, Address]:
    document = plain_file.read_object(path)
    try:
        return {name: Address(str(at["grpc"]), int(at["device_id"])) for name, at in document.items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise UsageError(
            f'{path}: must be {{"SWITCH": {{"grpc": "HOST:PORT", "device_id": N}}, …}}, with names such as p0l0'
        ) from None


def _chosen(where: Mapping[str, Address], names: list[str]) -> Mapping[str, Address]:
    for name in names:
        if name not in where:
            raise UsageError(f"no switch {name!r} with P4Runtime; switches: {', '.join(where) or 'none'}")
    return {name: where[name] for name in names} if names else where


def _pipelines(options: argparse.Namespace) -> Pipelines:
    return read_pipelines(options.pipelines) if options.pipelines else compiled_pipelines()


def _progress(options: argparse.Namespace) -> Any:
    if options.format == "json" or not sys.stderr.isatty():
        return None

    def show(name: str, done: int, total: int) -> None:
        print(f"\r{done}/{total} {name}\033[K", end="" if done < total else "\r\033[K", file=sys.stderr, flush=True)

    return show
