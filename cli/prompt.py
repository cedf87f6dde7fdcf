"""The Mininet prompt on a running lab, with the fault verbs and a few other commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from common.terminal.choices import no_such
from common.terminal.counted import counted
from topo import Plan, parse_node
from topo.emulation import Lab
from topo.fault import VERBS, Fault, FaultError, targets, verb_table
from topo.path import path_of_ev, paths
from topo.show import show_paths

if TYPE_CHECKING:
    from topo.emulation.network import PromptCommand


class FaultyLab(Protocol):
    """A lab whose faults can be changed, in either world."""

    @property
    def plan(self) -> Plan: ...
    def inject(self, verb: str, target: str, value: float | None = None, seed: int = 0) -> Fault: ...
    def undo(self, fault: Fault) -> None: ...
    def heal(self) -> None: ...
    def faults(self) -> list[Fault]: ...


def open_shell(lab: Lab, script: str | None = None) -> None:
    """Mininet's prompt, or its commands from the file `script`. Leaving it leaves the lab running."""
    from topo.emulation.network import network, prompt  # Mininet: slow to import

    prompt(network(lab.plan, lab.name), prompt_commands(lab), script)


def prompt_commands(lab: Lab) -> dict[str, PromptCommand]:
    """Our words at the prompt: every fault verb, and a few more."""
    from topo.emulation.network import PromptCommand

    def usage(words: str, meaning: str) -> str:
        return f"{words:38} {meaning}"

    def hosts(given: list[str]) -> list[str]:
        return [host.name for host in lab.plan.hosts() if host.name not in given] if len(given) < 2 else []

    def evs(given: list[str]) -> list[str]:
        if len(given) != 2:
            return hosts(given)
        pair = (lab.plan.host(name) for name in given)
        return ["off", *(f"{path.ev:#010x}" for path in paths(lab.plan, *pair))]

    def numbers(given: list[str]) -> list[str]:
        return [] if given else ["all", *(str(number) for number, _ in enumerate(lab.faults(), 1))]

    def fault(name: str) -> Callable[[list[str]], list[str]]:
        return lambda given: [] if given else list(targets(lab.plan, name))

    usages = {row[0].split()[0]: usage(row[0], row[1]) for row in verb_table()}

    def by_fault(given: list[str]) -> str:
        """As on the command line, where `fault` comes before each verb."""
        if given in ([], ["list"]):
            return show_faults(lab)
        if given[0] not in VERBS:
            raise FaultError(no_such("fault", given[0], ["list", *VERBS]))
        return inject(lab, given[0], given[1:])

    return {
        **{name: PromptCommand(usages[name], partial(inject, lab, name), fault(name)) for name in VERBS},
        "fault": PromptCommand(
            usage("fault [VERB TARGET [NUMBER]]", "as on the command line; alone, those in force"),
            by_fault,
            lambda given: fault(given[0])(given[1:]) if given[:1] and given[0] in VERBS else ["list", *VERBS],
        ),
        "faults": PromptCommand(usage("faults", "those in force, numbered"), lambda _: show_faults(lab)),
        "undo": PromptCommand(
            usage("undo [NUMBER|all]", "the last fault, one by its number, or all"),
            lambda given: undo_faults(lab, *given[:1]),
            numbers,
        ),
        "paths": PromptCommand(usage("paths H1 H2", "the paths between two hosts"), partial(_paths, lab), hosts),
        "steer": PromptCommand(
            usage("steer H1 H2 EV|off", "H1's kernel sends to H2 along one path"), partial(_steer, lab), evs
        ),
    }


def show_faults(lab: FaultyLab) -> str:
    faults = lab.faults()
    return "\n".join(f"{number}  {fault.describe()}" for number, fault in enumerate(faults, 1)) or "no fault in force"


def parse_injection(given: list[str], verb: str) -> tuple[str, float | None]:
    """Target and number of a verb's words, `p0l0 p0s0` being as good as `p0l0-p0s0`."""
    argument = VERBS[verb].argument
    rest = list(given)
    value = None
    if argument is not None and rest:
        try:
            value = float(rest[-1].rstrip("%"))
            rest.pop()
        except ValueError:
            if len(rest) > 1 and not _is_node(rest[-1]):
                raise FaultError(f"{verb}: {argument.rule(repr(rest[-1]))}") from None
    if not rest or len(rest) > 2:
        raise FaultError(f"usage: {next(row[0] for row in verb_table() if row[0].split()[0] == verb)}")
    return "-".join(rest), value


def _is_node(word: str) -> bool:
    try:
        parse_node(word)
    except ValueError:
        return False
    return True


def inject(lab: Lab, verb: str, given: list[str]) -> str:
    target, value = parse_injection(given, verb)
    return done(lab.inject(verb, target, value))


def done(fault: Fault) -> str:
    """What is said of a fault that was injected."""
    return fault.describe() + ("" if VERBS[fault.verb].lasting else ": done")


def undo_faults(lab: FaultyLab, which: str | None = None) -> str:
    """`which`: a number of `show_faults`, `all`, or None for the last one."""
    faults = lab.faults()
    if which == "all":
        lab.heal()
        return f"undone: {counted(len(faults), 'fault')}"
    if not faults:
        return "no fault in force"
    number = len(faults) if which is None else int(which) if which.isascii() and which.isdecimal() else 0
    if not 1 <= number <= len(faults):
        raise FaultError(f"undo: {which!r} is no number of a fault in force, 1 to {len(faults)}, nor 'all'")
    lab.undo(faults[number - 1])
    return f"undone: {faults[number - 1].describe()}"


def _paths(lab: Lab, given: list[str]) -> str:
    if len(given) != 2:
        raise FaultError("usage: paths H1 H2")
    chosen = list(paths(lab.plan, *map(lab.plan.host, given)))
    return show_paths(lab.plan, chosen, lab.faults())


def _steer(lab: Lab, given: list[str]) -> str:
    if len(given) != 3:
        raise FaultError("usage: steer H1 H2 EV, or steer H1 H2 off")
    source, destination = map(lab.plan.host, given[:2])
    if given[2] == "off":
        lab.unsteer(source, destination)
        return f"{source} → {destination}: by routes again"
    path = path_of_ev(lab.plan, source, destination, int(given[2], 0))
    lab.steer(path)
    return f"{source} → {destination}: by plane {path.plane}, {path.via or 'same leaf'}"
