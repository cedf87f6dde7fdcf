"""A run (scenario, plan, world, rate, lengths, seed) as the options of `./lab run` describe it."""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from cli.host_names import parse_hosts
from cli.options import seed_of
from common.pairs import json_or_text, parse_pairs
from endpoint import plugins
from running import SECONDS_MAX, Choices, RunSpec, calibration, check_command, rehearse, scenario_of
from running.fault_words import parse
from running.options import DEFAULTS
from running.transport_choice import transport
from scenarios import Command, Scenario, library
from scenarios.user_traffic.command import with_command
from topo import Host, Plan, load_plan
from topo.plan import rate_of
from topo.planfile import switch_of_environment

BMV2_SWITCHES_MAX = 40  # a process of about 33 MB and two busy threads each


def chosen(options: Mapping[str, Any]) -> RunSpec:
    """The run of some options of `./lab run` (`running/options.py`); the others have their defaults. ValueError."""
    return choose(asked(**options))


def asked(**options: Any) -> argparse.Namespace:
    """Arguments of `./lab run`, with defaults for what is left out."""
    return argparse.Namespace(**{**DEFAULTS, **options})


def choose(
    arguments: argparse.Namespace,
    tell: Callable[[str], None] = lambda line: None,
    before_links: Callable[[RunSpec], None] = lambda spec: None,
) -> RunSpec:
    """The run that the arguments describe; ValueError says what is wrong with them.

    `before_links` is called when the arguments are known to be right, and before any real link is built.
    """
    if arguments.ranks is not None and arguments.program is None:
        raise ValueError("--ranks names the hosts of --program: it needs --program COMMAND")
    if library.is_workload(arguments.scenario):
        from running.long_files import watch  # late: it needs numpy
        from schedules import watch_with

        watch_with(watch)
    scenario = scenario_of(arguments.scenario, arguments.short, None)
    simulated = arguments.world == "simulated"
    overrides = plan_overrides(arguments.set, simulated)
    plan_source = arguments.plan or usual_plan(scenario)
    if arguments.program is not None:
        scenario = with_command(scenario, command_of(arguments, plan_source, overrides))
    pairs = parse_pairs(arguments.setting, "--setting", "selection=oblivious")
    settings = plugins.absolute({name: json_or_text(value) for name, value in pairs.items()})
    taken = transport(arguments.transport, scenario.settings)
    plan = load_plan(plan_source, overrides)
    if simulated:
        plan = all_embedded(plan, arguments.set, tell)
    wanted = any(text.startswith("switch=") for text in arguments.set)
    if plan.switch == "bmv2" and plan.switch_count > BMV2_SWITCHES_MAX and not wanted:
        tell(f"{plan.switch_count} BMv2 processes are more than {BMV2_SWITCHES_MAX}: taking embedded switches instead")
        plan, overrides = replace(plan, switch="embedded"), {**overrides, "switch": "embedded"}
    choices = Choices(
        transport=replace(taken, settings={**taken.settings, **settings}, payload=arguments.payload),
        plan=plan,
        seed=seed_of(arguments.seed),
        world=arguments.world,
        time_factor=float(arguments.time),
        short=arguments.short,
        until_s=arguments.until,
        record_packets_s=recorded(arguments, scenario),
        reconvergence_s=arguments.reconvergence,
        overrides=overrides,
        setting_changes=settings,
        added_faults=tuple(parse(text, scenario.phases) for text in arguments.fault),
        source=arguments.scenario,
        plan_source=plan_source,
    )
    return rated(RunSpec(scenario, choices), arguments, tell, before_links)


def command_of(arguments: argparse.Namespace, plan_source: str, overrides: Mapping[str, str]) -> Command:
    """The command of --program, and its hosts: those of --ranks, or the first and the last host of the plan."""
    if library.is_workload(arguments.scenario):
        raise ValueError(f"--program takes the place of a scenario's traffic, and {arguments.scenario} is nothing else")
    plan = load_plan(plan_source, overrides)
    hosts = parse_hosts(plan, arguments.ranks) if arguments.ranks else [Host(0), Host(plan.host_count - 1)]
    if len(hosts) < 2:
        raise ValueError(f"--ranks must name two hosts or more for --program (got {arguments.ranks})")
    command = Command(arguments.program, tuple(host.name for host in hosts))
    try:
        words = command.argv
    except ValueError as error:
        raise ValueError(
            f"--program must be words as a shell reads them (got {arguments.program!r}: {error})"
        ) from None
    check_command(words, emulated=arguments.world == "emulated")
    return command


def rated(
    spec: RunSpec, arguments: argparse.Namespace, tell: Callable[[str], None], before_links: Callable[[RunSpec], None]
) -> RunSpec:
    """The run at the rate of --rate, of the plan, or as this machine was measured."""
    plan, source = spec.choices.plan, "the plan" if arguments.rate is None else "--rate"
    rate_bps = plan.links.host_rate_bps if arguments.rate is None else rate_of(arguments.rate)
    calibrated: dict[str, Any] = {"source": source, "port_rate_bps": rate_bps}
    if arguments.world == "emulated":
        rehearse(spec)  # a wrong fault or setting is refused before links are built to measure with
        before_links(spec)
        if arguments.rate is None:
            calibrated = calibration.calibrated(plan, spec.scenario, tell, arguments.calibrate)
    plan = plan.at_rate(calibrated["port_rate_bps"])
    if arguments.world == "emulated":
        rate, trip = f"{plan.links.host_rate_bps / 1e6:.2g} Mb/s", f"{plan.base_rtt_ns / 1e6:.3g} ms"
        tell(f"at {rate} per port a base round trip takes {trip}: steps, phases and faults follow")
    return RunSpec(spec.scenario, replace(spec.choices, plan=plan, calibration=calibrated))


def recorded(arguments: argparse.Namespace, scenario: Scenario) -> tuple[float, float] | None:
    """The seconds of lab time of `--record-packets`. ValueError says what is wrong with them."""
    text = arguments.record_packets
    if text is None:
        return None
    if arguments.world != "simulated":
        raise ValueError("--record-packets: only with --world simulated; on real links `./lab capture` records packets")
    first, dots, last = text.partition("..")
    length_s = sum(phase.seconds for phase in scenario.phases) * arguments.time
    try:
        start_s, stop_s = float(first), float(last)
    except ValueError:
        dots = ""
    if not dots or not 0 <= start_s < stop_s <= SECONDS_MAX or start_s >= length_s:
        raise ValueError(
            f"--record-packets must be START..END in seconds of the run, such as 5..5.5, END at most {SECONDS_MAX}"
            f" (got {text!r}); this run has {length_s:g} s"
        )
    return start_s, stop_s


def usual_plan(scenario: Scenario) -> str:
    """The scenario's own; MRCLAB_PLAN replaces `lab` on a machine that is too small for it."""
    return os.environ.get("MRCLAB_PLAN", scenario.plan) if scenario.plan == "lab" else scenario.plan


def plan_overrides(texts: Sequence[str], simulated: bool) -> dict[str, str]:
    """Keys of the plan to change: the switch kind of MRCLAB_SWITCH, and then those of --set.

    In virtual time every switch is an embedded one.
    """
    kind = "embedded" if simulated else switch_of_environment()
    chosen = parse_pairs(texts, "--set", "trimming.enabled=false")
    return {**({"switch": kind} if kind else {}), **chosen}


def all_embedded(plan: Plan, texts: Sequence[str], tell: Callable[[str], None]) -> Plan:
    """The plan as virtual time runs it, which has embedded switches only. ValueError when --set asks for others."""
    asked = [text for text in texts if text.startswith(("switch=", "switches.")) and not text.endswith("=embedded")]
    if asked:
        raise ValueError(
            f"--set {asked[0]}: with --world simulated every switch is an embedded one; leave it out, or leave"
            " --world simulated out"
        )
    others = {name: kind for name, kind in plan.switch_overrides.items() if kind != "embedded"}
    if others:
        named = ", ".join(f"{name} ({kind})" for name, kind in others.items())
        tell(f"in virtual time every switch is an embedded one: so are {named} of plan {plan.name}")
    return replace(plan, switch="embedded", switch_overrides=MappingProxyType({}))
