"""The parts of a job: sets of NICs whose packets share no queue with those of other parts, or not in time.

Two sets of queue pairs influence each other by the queues that they share, and by messages that wait for each other.
So two cuts are exact:

- **Blocks.** Groups that span the same leaves are a block. Routes are static and every port has its own queue, so the
  packets of two blocks never meet: they cross the same spines, by different ports.
- **Windows.** In a ring nothing reaches further than one rank per round. The first k rounds of a rank depend on the k
  ranks before it alone.

Parts with the same faults at the same places are alike: they differ by their random draws alone, and form a class.

A third cut is not exact. **Thinning** by f divides the hosts of every leaf and the spines into f sets, and lets each
set of hosts use one set of spines only: a block is f thin ones. Every link keeps its load. As much is lost on a failed
link, and belongs to fewer queue pairs. A queue pair must keep `WAYS` paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from scale.job import RING, Job, ScaleError
from scenarios import TimedFault
from topo import Plan
from topo.fault import make_fault

WAYS = 192
"""The EVs of a queue pair, active ones and backups (`endpoint.nic.config`): it uses no more of its paths."""
HOSTS = 32
"""Per leaf of a thin block, or more: as many as were measured."""
INTERIOR = 16
"""Hosts of a window that represent all hosts of a leaf whom nothing from another leaf reaches."""
NODE = re.compile(r"(?<![\w.])(?:p(?P<plane>\d+)(?P<tier>[ls])(?P<switch>\d+)|h(?P<host>\d+))(?!\w)")


@dataclass(frozen=True)
class Part:
    """A small fabric with its groups and faults. `weights`: how many NICs of one member each host represents.

    `members` parts of the job are like this one; `title` names the first of them.
    """

    title: str
    plan: Plan
    groups: tuple[tuple[int, ...], ...]
    faults: tuple[TimedFault, ...]
    weights: tuple[float, ...]
    members: int

    @property
    def disturbed(self) -> bool:
        """Whether a fault is in it."""
        return bool(self.faults)


@dataclass(frozen=True, slots=True)
class _Mapping:
    """Where the leaves, spines and hosts of a part are: numbers of the whole fabric to those of the part."""

    leaves: dict[int, int]
    spines: dict[int, int]
    hosts: dict[int, int]

    def fault(self, fault: TimedFault) -> TimedFault | None:
        """The fault as the part meets it; None for one at a node that the part has not."""
        absent = False

        def renamed(match: re.Match[str]) -> str:
            nonlocal absent
            host = match["host"]
            if host is not None:
                absent |= int(host) not in self.hosts
                return f"h{self.hosts.get(int(host), 0)}"
            here = self.leaves if match["tier"] == "l" else self.spines
            absent |= int(match["switch"]) not in here
            return f"p{match['plane']}{match['tier']}{here.get(int(match['switch']), 0)}"

        target = NODE.sub(renamed, fault.target)
        return None if absent else replace(fault, target=target)

    def all(self, faults: Iterable[TimedFault]) -> tuple[TimedFault, ...]:
        """Those of the faults that the part meets."""
        return tuple(mapped for fault in faults if (mapped := self.fault(fault)) is not None)


@dataclass(frozen=True)
class Cut:
    """A job on a fabric, to be cut. `thin` is for blocks: 1 keeps every host and spine.

    ScaleError for fabrics and jobs that cannot be cut.
    """

    plan: Plan
    job: Job
    faults: tuple[TimedFault, ...] = ()
    thin: int = 1

    def __post_init__(self) -> None:
        plan, job = self.plan, self.job
        if plan.shape is not None:
            raise ScaleError(f"plan {plan.name} must have two even tiers, leaves and spines, to be cut into parts")
        for fault in self.faults:
            make_fault(plan, fault.verb, fault.target, fault.value, fault.seed)
        if job.kind == RING:
            if plan.leaves < 2:
                raise ScaleError(f"a ring needs a plan with two leaves or more (plan {plan.name} has {plan.leaves})")
            if self.reach > plan.hosts_per_leaf:
                raise ScaleError(
                    f"--steps times --rounds must be at most the hosts per leaf, {plan.hosts_per_leaf}, so that what"
                    f" happens under one leaf reaches no further than the next (got {self.reach})"
                )
            return
        if plan.leaves % job.group:
            raise ScaleError(
                f"--group must divide the plan's {plan.leaves} leaves: every NIC of a group is under another leaf"
                f" (got {job.group})"
            )
        for what, number in (("hosts per leaf", plan.hosts_per_leaf), ("spines", plan.spines)):
            if number % self.thin:
                raise ScaleError(f"--thin must divide the plan's {number} {what} (got {self.thin})")

    @property
    def reach(self) -> int:
        """By how many ranks something spreads along a ring before the job ends."""
        return self.job.steps * self.job.rounds_per_step

    @cached_property
    def whole(self) -> Part:
        """All of the job as one part."""
        plan, group = self.plan, self.job.group
        per_leaf, blocks = plan.hosts_per_leaf, range(plan.leaves // group) if group else ()
        groups: Sequence[tuple[int, ...]] = [tuple(range(plan.host_count))]
        if group:
            groups = [
                crossing(range(b * group, (b + 1) * group), slot, per_leaf) for b in blocks for slot in range(per_leaf)
            ]
        return Part("all of it", plan, tuple(groups), self.faults, (1.0,) * plan.host_count, 1)

    def parts(self) -> list[Part]:
        """One part of each class, undisturbed ones first."""
        made = [self._window(leaf) for leaf in range(self.plan.leaves)] if self.job.kind == RING else self._blocks()
        classes: dict[tuple[TimedFault, ...], Part] = {}
        for part in made:
            first = classes.setdefault(part.faults, part)
            if first is not part:
                classes[part.faults] = replace(first, members=first.members + 1)
        return sorted(classes.values(), key=lambda part: part.disturbed)

    # --- blocks -------------------------------------------------------------------------------------------

    def _blocks(self) -> list[Part]:
        firsts = range(0, self.plan.leaves, self.job.group)
        return [self._block(first, piece) for first in firsts for piece in range(self.thin)]

    def _block(self, first: int, piece: int) -> Part:
        """The thin block of this number, of the block that begins with this leaf."""
        plan, group = self.plan, self.job.group
        slots, spines = plan.hosts_per_leaf // self.thin, plan.spines // self.thin
        small = replace(plan, leaves=group, spines=spines, hosts_per_leaf=slots)
        leaves = range(first, first + group)
        mapping = _Mapping(
            {leaf: place for place, leaf in enumerate(leaves)},
            {piece * spines + place: place for place in range(spines)},
            {
                leaf * plan.hosts_per_leaf + piece * slots + slot: place * slots + slot
                for place, leaf in enumerate(leaves)
                for slot in range(slots)
            },
        )
        groups = tuple(crossing(range(group), slot, slots) for slot in range(slots))
        title = f"leaves {first} to {first + group - 1}" + (f", {piece + 1} of {self.thin}" if self.thin > 1 else "")
        return Part(title, small, groups, mapping.all(self.faults), (1.0,) * (group * slots), 1)

    # --- windows ------------------------------------------------------------------------------------------

    @staticmethod
    def _meets(fault: TimedFault, leaves: Sequence[int]) -> bool:
        """Whether a fault is at a spine, and at no leaf but these: a window of these has all spines then."""
        named = list(NODE.finditer(fault.target))
        switches = {int(name["switch"]) for name in named if name["tier"] == "l"}
        return any(name["tier"] == "s" for name in named) and switches <= set(leaves)

    def _window(self, leaf: int) -> Part:
        """A leaf's ranks behind those of the leaf before it, as a ring of two leaves; those of the second count."""
        plan, reach, per_leaf = self.plan, self.reach, self.plan.hosts_per_leaf
        before = (leaf - 1) % plan.leaves
        named = [name for fault in self.faults for name in NODE.finditer(fault.target)]
        at_spines = any(self._meets(fault, (before, leaf)) for fault in self.faults)
        spines = plan.spines if at_spines else min(plan.spines, -(-WAYS // plan.planes))
        hosts = (divmod(int(name["host"]), per_leaf) for name in named if name["host"] is not None)
        inner = sorted({slot for own, slot in hosts if own in (before, leaf) and reach <= slot < per_leaf - reach})
        middle = [slot for slot in range(reach, per_leaf - reach) if slot not in inner]
        shown = middle[:INTERIOR]  # of hosts that no other leaf reaches, these represent all
        ends = {slot for slot in range(per_leaf) if slot < reach or slot >= per_leaf - reach}
        slots = sorted({*ends, *inner, *shown})
        each = {slot: len(middle) / len(shown) for slot in shown}
        mapping = _Mapping(
            {before: 0, leaf: 1},
            {spine: spine for spine in range(spines)},
            {
                own * per_leaf + slot: index * len(slots) + place
                for index, own in enumerate((before, leaf))
                for place, slot in enumerate(slots)
            },
        )
        small = replace(plan, leaves=2, spines=spines, hosts_per_leaf=len(slots))
        weights = (0.0,) * len(slots) + tuple(each.get(slot, 1.0) for slot in slots)
        ring = tuple(range(2 * len(slots)))
        return Part(f"leaf {leaf}", small, (ring,), mapping.all(self.faults), weights, 1)


def thinned(plan: Plan) -> int:
    """By how much blocks on a plan can be divided: the most that leaves `HOSTS` per leaf and `WAYS` paths."""
    for thin in range(plan.hosts_per_leaf // HOSTS, 1, -1):
        if plan.hosts_per_leaf % thin == plan.spines % thin == 0 and plan.spines // thin * plan.planes >= WAYS:
            return thin
    return 1


def crossing(leaves: Sequence[int], slot: int, per_leaf: int) -> tuple[int, ...]:
    """The hosts at the same place under each of these leaves."""
    return tuple(leaf * per_leaf + slot for leaf in leaves)
