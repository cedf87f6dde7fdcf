"""One run of a student's class in the transport, in virtual time: a case, a box, a journal and a log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from course.box.box import BoxLimits
from course.exercise import NotPossibleError, StudentWork
from course.seams.congestion import WindowCongestion
from course.seams.log import Log, Seat
from course.seams.ports import TellingOperations
from course.seams.selection import HealthSelection, SpraySelection
from endpoint.mrc import OPERATIONS, SEAMS
from endpoint.mrc.presets import LAB
from judging import Run, Span
from running.estimate import TooLargeError
from running.launch import made
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


@dataclass(frozen=True)
class TrialCase(Case):
    """A case of a lab: it runs the student's class at one seam, and is judged by the lab."""

    seam: Seam = "spray"

    def scenario(self, plan: str = "hunted") -> Scenario:
        found = super().scenario(plan)
        return replace(found, name="course", checks=lambda setting: [], plain=None)

    @property
    def transport_settings(self) -> dict[str, Any]:
        setting, _ = SEAM[self.seam]
        return {**SETTINGS, setting: NAME, **self.settings}


@dataclass(slots=True)
class Trial:
    """A case that has been run. `windows` are those of lab 7: (ns, bytes), for each queue pair."""

    case: TrialCase
    run: Run
    log: Log
    windows: list[list[tuple[int, int]]] = field(default_factory=list)
    folder: Path | None = None

    def phase(self, name: str, skip: float = 0.0) -> Span:
        """A phase without its first share."""
        span = self.run.phases[name]
        return Span(name, span.start_ns + round(skip * span.length_ns), span.stop_ns)


@contextmanager
def installed(seat: Seat, seam: Seam) -> Iterator[None]:
    """The student's class at its seam, under the name of the course, until the end."""
    setting, base = SEAM[seam]
    known: dict[str, Any] = OPERATIONS if seam == "ports" else SEAMS[setting]
    known[NAME] = seat.of_student(base, boxes=seam == "ports")
    try:
        yield
    finally:
        del known[NAME]


def attempt(work: StudentWork, case: TrialCase, folder: Path, limits: BoxLimits | None = None) -> Trial:
    """Run a case with the student's class. BoxError when the class fails; NotPossibleError when the lab does."""
    with ExitStack() as boxes:
        seat = Seat(lambda: boxes.enter_context(work.box(limits)), case.plan.base_rtt_ns)
        with installed(seat, case.seam):
            try:
                path = made(case.spec(), folder)
            except TooLargeError as error:
                raise NotPossibleError(str(error)) from error
    return Trial(case, Run.open(path), seat.log, seat.windows, path)
