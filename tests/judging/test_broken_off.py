"""A run that did not end: what is said of it, and when it is unknown."""

from collections.abc import Callable

import pytest

from judging import evidence
from judging.run import SECOND_NS, Run

Build = Callable[..., Run]
RAISED = "AlgorithmError: mine.py:17: ZeroDivisionError: division by zero (in congestion Mine.on_ack)"
CTRL_C = "KeyboardInterrupt: "


def broken_off(made_up: Build, at_s: float, message: str) -> Run:
    """A run of three phases, from 2 s to 24 s, that an exception ended at this time."""
    lines = [line for line in made_up().lines if int(line["t_ns"]) <= at_s * SECOND_NS]
    error = {"t_ns": round(at_s * SECOND_NS), "node": "runner", "kind": "error", "message": message, "fatal": True}
    return Run([*lines, error])


@pytest.mark.parametrize(
    ("at_s", "message", "said"),
    [
        (18, RAISED, f"the run was interrupted in phase 'faults': {RAISED}"),
        (18, CTRL_C, "the run was interrupted in phase 'faults'"),
        (18, "OSError: no space\n left", "the run was interrupted in phase 'faults': OSError: no space left"),
        (26, RAISED, f"the run was interrupted after its last phase: {RAISED}"),
        (26, CTRL_C, "the run was interrupted after its last phase"),
        (-1, RAISED, f"the run has no phases: it ended before it began: {RAISED}"),
        (-1, CTRL_C, "the run has no phases: it ended before it began"),
    ],
)
def test_a_run_that_was_broken_off_is_unknown_and_names_what_ended_it(
    at_s: float, message: str, said: str, made_up: Build
) -> None:
    found = evidence.complete(broken_off(made_up, at_s, message))
    assert (found.holds, found.spoils, found.reason) == (None, True, said)


def test_another_error_after_the_last_phase_is_false(made_up: Build) -> None:
    found = evidence.complete(broken_off(made_up, 26, "RuntimeError: agent h3 died"))
    assert (found.holds, found.reason) == (False, "runner failed: RuntimeError: agent h3 died")
