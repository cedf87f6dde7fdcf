"""A hunt of a lab: a fixed number of drawn schedules; the first one that breaks is shrunk and written down.

Only the timeline is drawn and shrunk. Fabric, load and phases stay those of the lab, because the lab's limits are about
them.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common import files
from common.quoting import quoted
from common.scratch import Scratch
from course.exercise import StudentWork, typed
from course.result import Gate, TestOutcome
from course.seams.trial import SEAM, Trial, TrialCase, attempt
from judging import Finding
from page import export
from studies.hunting import AttemptOutcome as Broken
from studies.hunting import Case, Shrinker, found

SHRINK_RUNS = 30
SHRINK_S = 25.0
Judge = Callable[[Trial], Sequence[Finding]]
"""The findings of a trial; the first false one is what broke."""

ADAPTER = '''"""A student's class, as a setting of ./lab run."""

from course.seams.replay import of_student

OfStudent = of_student({path!r}, {seam!r}, {rtt_ns})
'''


@dataclass(frozen=True, slots=True)
class CourseHunt:
    """The last test of a lab. `draw` makes the case of a try, `judge` says what it broke; a correct solution breaks
    nothing. `sentence` is the rule that a student reads."""

    tries: int
    draw: Callable[[StudentWork, int], TrialCase]
    judge: Judge
    sentence: str

    def hunted(self, work: StudentWork) -> TestOutcome:
        """Every try; the counterexample of the first that breaks."""
        with Scratch("mrclab-course-") as scratch:
            for number in range(self.tries):
                case = self.draw(work, number)
                broken = self._tried(work, case, scratch)
                if broken.broken:
                    return self._caught(work, case, broken, number + 1, scratch)
        gate = Gate("schedules survived", self.tries, self.tries)
        return TestOutcome(True, self.sentence, f"{self.tries} drawn schedules were survived", (gate,))

    def _tried(self, work: StudentWork, case: TrialCase, folder: Path) -> Broken:
        trial = attempt(work, case, folder)
        false = [finding for finding in self.judge(trial) if finding.holds is False]
        return Broken({finding.check: finding.reason for finding in false})

    def _caught(self, work: StudentWork, case: TrialCase, broken: Broken, number: int, scratch: Path) -> TestOutcome:
        if work.brief:
            return self._outcome(case, broken, number, "a schedule that does it", ())
        frozen = replace(case, faults=())
        until_s, runs = time.monotonic() + SHRINK_S, 0

        def tried(candidate: TrialCase) -> Broken:
            nonlocal runs
            if replace(candidate, faults=()) != frozen or runs >= SHRINK_RUNS or time.monotonic() > until_s:
                return Broken({})
            runs += 1
            return self._tried(work, candidate, scratch)

        shrunk = Shrinker(tried, possible=in_time).shrink(case, broken)  # type: ignore[arg-type]
        small = shrunk.case
        assert isinstance(small, TrialCase)
        look = written(work, small, shrunk.outcome, number, runs, self.judge)
        return self._outcome(small, shrunk.outcome, number, "the smallest schedule that does it", look)

    def _outcome(
        self, case: TrialCase, broken: Broken, number: int, article: str, look: tuple[str, ...]
    ) -> TestOutcome:
        check, reason = next(iter(broken.broken.items()))
        faults = ", ".join(timeline_lines(case)) or "no fault at all"
        gate = Gate("schedules survived", number - 1, self.tries)
        return TestOutcome(False, self.sentence, f"{check}: {reason}; {article}: {faults}", (gate,), look)


def in_time(case: Case) -> bool:
    """Whether the timeline ends in its phase. A part of a schedule that a lab draws asks no more than the whole."""
    return all(fault.at_s + (fault.for_s or 0.0) <= case.faults_s for fault in case.faults)


def timeline_lines(case: TrialCase) -> list[str]:
    """The timeline in words."""
    values = ["" if fault.value is None else f" {fault.value:g}" for fault in case.faults]
    return [
        f"{fault.verb} {fault.target}{value} at {fault.at_s:g} s for {fault.for_s or 0:g} s"
        for fault, value in zip(case.faults, values, strict=True)
    ]


def written(
    work: StudentWork, case: TrialCase, broken: Broken, number: int, runs: int, judge: Judge
) -> tuple[str, ...]:
    """Write the counterexample as a scenario with its plan and adapter, and its replay as one HTML file."""
    path = scenario_of(work, case, broken, number, runs)
    replay = work.folder / "counterexample.html"
    with Scratch("mrclab-course-") as scratch:
        trial = attempt(work, case, scratch)
        if trial.folder is not None:
            export.write([trial.folder], replay)
    return (
        f"{quoted(str(typed(replay)))} (open it in a browser: the run with the schedule)",
        found.repeat(path, case.seed),
    )


def scenario_of(work: StudentWork, case: TrialCase, broken: Broken, number: int, runs: int) -> Path:
    """The scenario file of a counterexample, with its plan and the adapter for the student's class."""
    folder = work.folder
    folder.mkdir(parents=True, exist_ok=True)
    setting, _ = SEAM[case.seam]
    adapter = folder / "adapter.py"
    files.write(adapter, ADAPTER.format(path=str(work.path), seam=case.seam, rtt_ns=case.plan.base_rtt_ns))
    own = replace(case, settings={**case.settings, setting: f"{adapter}:OfStudent"})
    return found.write(folder, "counterexample", own, broken, number, runs, found.OF_ANY)
