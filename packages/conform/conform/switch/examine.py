"""All tests of a switch over all seeds, and what a switch without trimming costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from conform.capture import Event
from conform.rule import Rule
from conform.switch import congestion, forwarding
from conform.switch.bench import Bench
from conform.switch.device import SwitchDevice
from conform.switch.findings import Findings
from conform.switch.wire import SilentError
from scenarios import Setting, library
from topo import load_plan


def _why_not(device: SwitchDevice, test: Callable[..., object]) -> str:
    """Why a test cannot be made with this device; "" where it can."""
    about, told = device.about, "the device's file says that the switch "
    if test in congestion.MARKING and not about.marks:
        return told + "does not mark"
    if test in congestion.TRIMMING and not about.trims:
        return told + "does not trim"
    if test in congestion.QUEUES and not about.rate_bps:
        return "the device's file names no rate of its ports, so the tester cannot fill a queue"
    if test in (forwarding.ua, forwarding.un_and_ua) and not about.adjacencies:
        return told + "has no uA"
    return ""


def examined(
    interfaces: Sequence[str], device: SwitchDevice, rules: Sequence[Rule], runs: Mapping[int, Sequence[Event] | None]
) -> tuple[Findings, dict[int, list[Event]]]:
    """Make the tests of these rules at a switch behind these interfaces, in the order of the rules; gives findings and
    recordings. `runs` has the seeds, each with the recording of an earlier run or None.

    A switch that falls silent fails the test in which that happens; tests after it are not reachable.
    """
    found, recordings = Findings(), dict[int, list[Event]]()
    tests: dict[Callable[[Any], object], list[str]] = {}
    for rule in rules:
        for test in rule.functions():
            tests.setdefault(test, []).append(rule.id)
    for seed, events in runs.items():
        bench, silent = Bench(interfaces, device, found, seed, events), ""
        recordings[seed] = bench.recording
        try:
            for function, ours in tests.items():
                if why := silent or _why_not(device, function):
                    for name in ours:
                        found.unreachable(name, why)
                    continue
                try:
                    function(bench)
                except SilentError as error:
                    silent = f"in an earlier test, {error}"
                    for name in ours:
                        found.judge(name, False, str(error))
        finally:
            bench.wire.close()
        if silent:
            break
    return found, recordings


def unknown_without_trimming() -> list[str]:
    """The scenarios of the library whose verdict is unknown on a switch that cannot trim."""
    named = []
    for scenario in library.scenarios():
        phases = {phase.name: phase.seconds for phase in scenario.phases}
        setting = Setting(load_plan(scenario.plan), "mrc", 1, phases)
        if any(getattr(check, "__name__", "") == "switches_trimmed" for check in scenario.checks(setting)):
            named.append(scenario.name)
    return named
