"""The scenario that a workload file makes: its jobs on the hosts of a plan, from start to end, as long as they take.

A source is `FILE[,FILE…][@PLACEMENT]`: connection matrices of htsim (`.cm`) and GOAL programs (`.goal`), one job each.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.seeds import Purpose, derive
from judging import Story, checks
from judging.checks import Check
from scenarios.scenario import SAMPLE_S, Load, Phase, Scenario, Setting, Workload
from schedules import SUFFIXES, Schedule, ScheduleError, at, digest_of, shared
from topo import Host, Plan

__all__ = ["Source", "judge", "story"]

PACKED, RAIL, RANDOM = "packed", "rail", "random"
PLACEMENTS = (PACKED, RAIL, RANDOM)
PHASE = "run"
LAB_SLOWDOWN = 10_000  # of a lab with ports of 10 Mb/s, modelling 100 Gb/s: the lab time of a second of the file
SLACK = 20  # times as long as the jobs would take with nobody in their way
LEAST_S = 10.0
NOMINAL_BPS = 100e9
ROWS_MAX = 400_000
"""Counters that samples may journal together, of hosts and of queue pairs: about 200 MB. A host with a thousand queue
pairs fills a journal otherwise."""


@dataclass(frozen=True, slots=True)
class Source:
    """A user's workload: the files, and the hosts of their ranks."""

    files: tuple[Path, ...]
    placement: str = PACKED

    @classmethod
    def parse(cls, text: str) -> Source:
        """ScheduleError names what is wrong with the text."""
        names, mark, placement = text.partition("@")
        if mark and placement not in PLACEMENTS:
            raise ScheduleError(f"the placement behind @ must be one of {', '.join(PLACEMENTS)} (got {placement!r})")
        for name in names.split(","):
            if not name.endswith(SUFFIXES):
                raise ScheduleError(f"each file must end in {' or '.join(SUFFIXES)} (got {name!r})")
        return cls(tuple(Path(name).absolute() for name in names.split(",")), placement or PACKED)

    def names(self) -> list[str]:
        """A name for each job: the file's, numbered where it comes again."""
        stems = [file.stem.replace(".", "-") for file in self.files]
        return [stem if stems.count(stem) == 1 else f"{stem}-{index}" for index, stem in enumerate(stems)]

    def schedules(self) -> list[Schedule]:
        """The schedules in the files. ScheduleError names the file, the line and the rule."""
        schedules = [shared(file, digest_of(file)) for file in self.files]
        for schedule in schedules:
            if not schedule.messages:
                raise at(schedule.source, 0, "a workload must have at least one message")
        return schedules

    def digest(self) -> str:
        """The digests of all files and the placement."""
        return "-".join([*map(digest_of, self.files), self.placement])


def find(text: str) -> Scenario:
    """The scenario of these files. ScheduleError names what is wrong with them."""
    source = Source.parse(text)
    schedules = source.schedules()
    alone_s = LAB_SLOWDOWN * nominal_ns(schedules) / 1e9
    name = "+".join(source.names())
    return Scenario(
        name=name,
        title=story(name).title,
        description=story(name).description,
        plan="lab",
        workloads=lambda setting: workloads(source, setting),
        checks=judge,
        phases=(Phase(PHASE, LEAST_S + SLACK * alone_s),),
        sample_s=max(SAMPLE_S, alone_s * sum(map(counters, schedules)) / ROWS_MAX),
        until_done=True,
        load=lambda setting: Load(lasts_s(schedules, setting), sum(schedule.bytes for schedule in schedules)),
    )


def story(name: str) -> Story:
    """The introduction of such a run's report."""
    return Story(f"The workload {name}", "Messages and calculations as a workload file asks for them.")


def judge(setting: Setting) -> Sequence[Check]:
    """The checks of every such run; they need no file."""
    return [
        checks.bytes_right(),
        checks.messages_complete(),
        checks.schedule_complete(),
        checks.no_qp_error(),
        checks.tables_unchanged(),
    ]


def nominal_ns(schedules: Sequence[Schedule]) -> int:
    """How long the longest job would take alone on ports of 100 Gb/s, at most."""
    return max(schedule.chain_ns + round(schedule.most_bytes() * 8e9 / NOMINAL_BPS) for schedule in schedules)


def counters(schedule: Schedule) -> int:
    """The counters that a sample of all hosts journals: one per host, and one per queue pair at either end."""
    return schedule.ranks + 2 * schedule.pairs


def lasts_s(schedules: Sequence[Schedule], setting: Setting) -> float:
    """About how long the jobs take on this fabric: the most loaded host at line rate, and the longest chain."""
    chain_ns = max(schedule.chain_ns for schedule in schedules) * setting.plan.time_scale
    carried_ns = max(schedule.most_bytes() for schedule in schedules) * 8e9 / setting.host_rate_bps
    return max(chain_ns, carried_ns) / 1e9


def workloads(source: Source, setting: Setting) -> list[Workload]:
    """A workload per job. ScheduleError when the fabric has fewer hosts than the jobs have ranks."""
    schedules, plan = source.schedules(), setting.plan
    ranks = sum(schedule.ranks for schedule in schedules)
    if ranks > plan.host_count:
        own = ", ".join(f"{schedule.source} {schedule.ranks}" for schedule in schedules)
        raise ScheduleError(
            f"plan {plan.name} must have a host per rank: it has {plan.host_count}, and {ranks} are needed ({own});"
            " --plan names a larger one"
        )
    hosts = iter(placed(plan, source.placement, setting.seed))
    made = []
    for name, file, schedule in zip(source.names(), source.files, schedules, strict=True):
        options = {
            "file": str(file),
            "digest": digest_of(file),
            "time_scale": plan.time_scale,
            "qps": setting.queue_pairs,
        }
        own_hosts = tuple(next(hosts) for _ in range(schedule.ranks))
        made.append(Workload("schedule", options, ranks=own_hosts, name=name, phase=PHASE))
    return made


def placed(plan: Plan, placement: str, seed: int) -> list[str]:
    """All hosts in the order in which ranks take them.

    Packed fills leaf after leaf. Rail puts neighbours under different leaves, as where each GPU of a server is on
    another rail. Random is drawn from the seed.
    """
    numbers = list(range(plan.host_count))
    if placement == RAIL:
        numbers.sort(key=lambda number: (plan.downlink_of(Host(number)), plan.leaf_of(Host(number))))
    elif placement == RANDOM:
        random.Random(derive(seed, Purpose.PLACEMENT)).shuffle(numbers)
    return [f"h{number}" for number in numbers]
