"""A run gone through on paper, so that its mistakes are told first: its timeline, routing, and all else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common.terminal.choices import no_such
from endpoint import factory, profile
from endpoint.workloads import KINDS
from running.options import Choices
from running.spec import RunSpec
from scenarios import Program, TimedFault, Workload
from topo import Plan
from topo.fault import ActiveFaults, Change, Fault, FaultError, RoutingChange
from topo.profile import nic_profile

EXACT_S = 1e-6  # scaling rounds lengths and times; differences below a microsecond do not count


def rehearse(spec: RunSpec) -> None:
    """Makes every fault, workload, check and setting of a run. ValueError says which is wrong, and what is valid."""
    plan, starts_s, faults = spec.plan, spec.starts_s, spec.faults()
    timeline = moments(faults, starts_s)
    check_times(faults, spec.lengths_s, starts_s)
    rehearsed(plan, timeline)
    check_workloads(spec.workloads(), plan, list(starts_s))
    for program in spec.programs():
        check_place("program", program, plan, list(starts_s))
    spec.checks()
    check_settings(spec.choices, plan)


def check_workloads(workloads: Sequence[Workload], plan: Plan, phases: Sequence[str]) -> None:
    """Checks kinds, phases and hosts; the agents check the options."""
    for workload in workloads:
        if workload.kind not in KINDS:
            raise ValueError(f"workload {workload.name}: {no_such('kind', workload.kind, KINDS)}")
        check_place("workload", workload, plan, phases)


def check_place(what: str, work: Workload | Program, plan: Plan, phases: Sequence[str]) -> None:
    """Checks phase and hosts."""
    if work.phase not in phases:
        raise ValueError(f"{what} {work.name}: no phase {work.phase!r}: there is {', '.join(phases)}")
    for name in work.ranks or ():
        plan.host(name)


def check_settings(choices: Choices, plan: Plan) -> None:
    """The transport's settings, as the first host's NIC would take them."""
    own = profile.parse(nic_profile(plan, next(iter(plan.hosts()))))
    factory.make(choices.transport.agent, own, choices.seed, choices.transport.settings, 0)


@dataclass(frozen=True, slots=True)
class Moment:
    """At `at_s` seconds into the run, begin or end `fault`."""

    at_s: float
    begin: bool
    fault: TimedFault


def check_times(faults: Sequence[TimedFault], lengths_s: Mapping[str, float], starts_s: Mapping[str, float]) -> None:
    """ValueError for a fault that begins outside of its phase, lasts no time, or would lengthen the run."""
    for fault in faults:
        length_s = lengths_s[fault.phase]
        if not -EXACT_S <= fault.at_s <= length_s + EXACT_S:
            raise ValueError(
                f"{fault.verb} {fault.target} at {fault.at_s:g} s: phase {fault.phase!r} lasts {length_s:g} s, so a"
                f" fault in it begins at 0 to {length_s:g}"
            )
        if fault.for_s is None:
            continue
        left_s = sum(lengths_s.values()) - starts_s[fault.phase] - fault.at_s
        if not 0 < fault.for_s <= left_s + EXACT_S:
            raise ValueError(
                f"{fault.verb} {fault.target} at {fault.at_s:g} s for {fault.for_s:g} s: the run ends {left_s:g} s"
                f" after that, so it may last up to {left_s:g} s; without for_s it stays"
            )


def moments(faults: Sequence[TimedFault], starts_s: dict[str, float]) -> list[Moment]:
    """All beginnings and ends in order of time. `starts_s` is when each phase starts.

    At the same nanosecond ends come first, so that a target is whole before it breaks again.
    """
    result = []
    for fault in faults:
        if fault.phase not in starts_s:
            raise ValueError(f"{fault.verb} {fault.target}: no phase {fault.phase!r}: there is {', '.join(starts_s)}")
        at_s = starts_s[fault.phase] + fault.at_s
        result.append(Moment(round(at_s, 9), True, fault))
        if fault.for_s is not None:
            result.append(Moment(round(at_s + fault.for_s, 9), False, fault))
    return sorted(result, key=lambda moment: (moment.at_s, moment.begin))


class Paper:
    """The fabric of a rehearsal: it only writes down the changes that it is given."""

    def __init__(self) -> None:
        self.noted: list[Change] = []

    def refusal(self, change: Change) -> str | None:
        return None

    def carry_out(self, change: Change) -> None:
        self.noted.append(change)


def rehearsed(plan: Plan, timeline: Sequence[Moment]) -> list[tuple[Moment, list[Change]]]:
    """Each moment with its changes, by the rules of every world.

    FaultError says which fault a world would refuse, when, and why, in the world's own words.
    """
    paper = Paper()
    active = ActiveFaults(plan, paper)
    begun: dict[TimedFault, Fault] = {}
    result = []
    for moment in timeline:
        paper.noted, fault = [], moment.fault
        try:
            if moment.begin:
                begun[fault] = active.inject(fault.verb, fault.target, fault.value, fault.seed)
            else:
                active.undo(begun.pop(fault))
        except FaultError as error:
            where = f"{fault.verb} {fault.target} in phase {fault.phase}, {moment.at_s:g} s into the run"
            raise type(error)(f"{error} ({where})") from None
        result.append((moment, paper.noted))
    return result


def noticed(plan: Plan, timeline: Sequence[Moment]) -> list[float]:
    """The times at which routing has something to notice, in seconds into the run."""
    return [
        moment.at_s
        for moment, changes in rehearsed(plan, timeline)
        if any(isinstance(change, RoutingChange) for change in changes)
    ]
