"""One run of a student's class in the transport, in virtual time: a case, a box, a journal and a log."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, Literal

from common.quoting import command
from course.box.box import BoxLimits
from course.exercise import NotPossibleError, StudentWork, typed
from course.seams.congestion import WindowCongestion
from course.seams.held import part
from course.seams.log import Log, Seat
from course.seams.ports import TellingOperations
from course.seams.selection import HealthSelection, SpraySelection
from endpoint.mrc import OPERATIONS, SEAMS
from endpoint.mrc.presets import LAB
from judging import Run, Span
from running.estimate import TooLargeError
from running.runner import make_run
from scenarios import Scenario
from studies.hunting import Case

Seam = Literal["spray", "health", "window", "ports"]
SEAM: dict[Seam, tuple[str, type[Any]]] = {
    "spray": ("selection", SpraySelection),
    "health": ("selection", HealthSelection),
    "window": ("congestion", WindowCongestion),
    "ports": ("operations", TellingOperations),
}
NAME = "course"
"""The name under which the endpoint finds the class of the trial that runs."""
SETTINGS = {**LAB, "evs_active": 64, "evs_backup": 0}
"""Every path is in use, and the bounds of the labs were found with all rules of this lab on."""
HEADERS_BYTES = 138  # of a write's packet: Ethernet 14, IPv6 40 + 40, UDP 8, BTH 12, METH 4, RETH 16, ICRC 4


@dataclass(frozen=True)
class TrialCase(Case):
    """A case of a lab: it runs the student's class at one seam, and is judged by the lab."""

    seam: Seam = "spray"

    def scenario(self, plan: str = "hunted") -> Scenario:
        scenario = super().scenario(plan)
        return replace(scenario, name="course", checks=lambda setting: [], plain=None)

    @property
    def transport_settings(self) -> dict[str, Any]:
        setting, _ = SEAM[self.seam]
        return {**SETTINGS, setting: NAME, **self.settings}

    @property
    def possible_bps(self) -> float:
        """The payload that the ports of one host can carry."""
        plan = self.plan
        size = plan.packets.pmtu_bytes
        return plan.planes * plan.links.host_rate_bps * size / (size + HEADERS_BYTES)


@dataclass(slots=True)
class Trial:
    """A case that has been run. `windows` are those of lab 7: (ns, bytes), for each queue pair."""

    case: TrialCase
    run: Run
    log: Log
    windows: list[list[tuple[int, int]]] = field(default_factory=list)
    folder: Path | None = None

    def phase(self, name: str) -> Span:
        return part(self.run, name, 0.0)

    @property
    def look(self) -> tuple[str, ...]:
        """The commands with which a reader looks at the run."""
        return (command("view", typed(self.folder)),) if self.folder else ()


@contextmanager
def installed(seat: Seat, seam: Seam) -> Iterator[None]:
    """The student's class at its seam, under the name of the course, until the end."""
    setting, base = SEAM[seam]
    known: dict[str, Any] = OPERATIONS if seam == "ports" else SEAMS[setting]
    known[NAME] = own = seat.of_student(base, boxes=seam == "ports")
    try:
        yield
    finally:
        del known[NAME]
        own.seat = own.box = None  # compiled bases keep the class, and it would keep the whole check


def once(work: StudentWork, name: str, case: TrialCase) -> Trial:
    """The trial of a name, run once per check."""
    return work.once(name, lambda: attempt(work, case, work.folder / "runs"))


def uplink(rng: Random, shape: Mapping[str, int], plane: int) -> str:
    """The link of the first leaf, the sender's, to one spine of a plane."""
    return f"p{plane}l0-p{plane}s{rng.randrange(shape['spines'])}"


def attempt(work: StudentWork, case: TrialCase, folder: Path, limits: BoxLimits | None = None) -> Trial:
    """Run a case with the student's class. BoxError when the class fails; NotPossibleError when the lab does."""
    with ExitStack() as boxes:
        seat = Seat(lambda: boxes.enter_context(work.box(limits)), case.plan.base_rtt_ns)
        with installed(seat, case.seam):
            try:
                path = make_run(case.spec(), folder)
            except TooLargeError as error:
                raise NotPossibleError(str(error)) from error
    return Trial(case, Run.open(path), seat.log, seat.windows, path)
