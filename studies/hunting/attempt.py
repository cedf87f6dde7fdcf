"""One try: the case run in virtual time and judged."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path

from endpoint.nic import AlgorithmError
from judging import Run, evidence
from judging.judge import verdict_of
from running import RunSpec
from running.estimate import TooLargeError
from running.runner import make_run
from studies.farm import engine
from studies.hunting.case import Case


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """`broken` are the sentences that did not hold, by check; empty when all held. `silent` says nothing was shown."""

    broken: dict[str, str]
    silent: bool = False

    @property
    def failed(self) -> bool:
        return bool(self.broken)

    def like(self, other: AttemptOutcome) -> bool:
        """Whether the same thing broke: the first check that another outcome names is broken here as well."""
        return bool(other.broken) and next(iter(other.broken)) in self.broken


Tried = tuple[Case, AttemptOutcome]


def attempt(case: Case, folder: Path | None = None) -> AttemptOutcome:
    """Run and judge a case; its journals are kept in `folder`, a folder of runs, when one is given."""
    if folder is not None:
        return tried(case.spec(), folder)
    with engine.folder("") as own:
        return tried(case.spec(), Path(own))


def tried(spec: RunSpec, root: Path) -> AttemptOutcome:
    """The run, in a new directory below `root`."""
    try:
        path = make_run(spec, root)
    except TooLargeError:
        raise  # this machine's memory is no property of the case
    except (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        return AttemptOutcome({f"exception {type(error).__name__} in {last.name}": f"{where}: {error}"})
    run = Run.open(path)
    if raised := algorithm_error(run):
        return AttemptOutcome({"algorithm": raised})
    verdict = verdict_of(run, spec.checks())
    broken = {finding.check: finding.reason for finding in verdict.findings if finding.holds is False}
    return AttemptOutcome(broken, silent=verdict.holds is None)


def algorithm_error(run: Run) -> str:
    """The error of a class from the user's own file that ended the run, on one line; "" if there is none.

    The verdict of such a run is unknown, but for a hunt the error is a finding.
    """
    prefix = f"{AlgorithmError.__name__}: "
    messages = [evidence.error_text(line) for line in run.kind("error") if line.get("fatal")]
    return next((message.removeprefix(prefix) for message in messages if message.startswith(prefix)), "")
