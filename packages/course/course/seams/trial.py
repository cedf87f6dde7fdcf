"""One run of a student's class in the transport, in virtual time: a case, a box, a journal and a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from course.box.box import Box, BoxLimits
from course.exercise import NotPossibleError, StudentWork
from course.seams.congestion import WindowCongestion
from course.seams.log import Log
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
class Course(Case):
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

    case: Course
    run: Run
    log: Log
    windows: list[list[tuple[int, int]]] = field(default_factory=list)
    folder: Path | None = None

    def phase(self, name: str, skip: float = 0.0) -> Span:
        """A phase without its first share."""
        span = self.run.phases[name]
        return Span(name, span.start_ns + round(skip * span.length_ns), span.stop_ns)


@contextmanager
def installed(
    another: Callable[[], Box], seam: Seam, log: Log, windows: list[list[tuple[int, int]]], rtt_ns: int
) -> Iterator[None]:
    """The student's class at its seam, under the name of the course, until the end. `another` opens a box."""
    setting, base = SEAM[seam]

    if seam == "ports":
        kind = type("OfStudent", (base,), {"another": staticmethod(another), "log": log, "rtt_ns": rtt_ns})
    elif seam == "window":

        def init(self: Any, *arguments: Any) -> None:
            windows.append([])
            self.windows = windows[-1]
            base.__init__(self, *arguments)

        kind = type("OfStudent", (base,), {"box": another(), "__init__": init})
    else:
        kind = type("OfStudent", (base,), {"box": another(), "log": log, "made": 0, "rtt_ns": rtt_ns})
    known: dict[str, Any] = OPERATIONS if seam == "ports" else SEAMS[setting]
    before = known.get(NAME)
    known[NAME] = kind
    try:
        yield
    finally:
        if before is None:
            del known[NAME]
        else:
            known[NAME] = before


def attempt(work: StudentWork, case: Course, folder: Path, limits: BoxLimits | None = None) -> Trial:
    """Run a case with the student's class. BoxError when the class fails; NotPossibleError when the lab does."""
    log, windows = Log(), list[list[tuple[int, int]]]()
    with ExitStack() as boxes:

        def another() -> Box:
            return boxes.enter_context(work.box(limits))

        with installed(another, case.seam, log, windows, case.plan.base_rtt_ns):
            try:
                path = made(case.spec(), folder)
            except TooLargeError as error:
                raise NotPossibleError(str(error)) from error
    return Trial(case, Run.open(path), log, windows, path)
