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


def test_a_run_without_the_journal_of_a_host_is_unknown(made_up: Build) -> None:
    """Its messages would count as never posted."""
    lines = made_up().lines
    hosts = {line["node"] for line in lines if line["kind"] == "process" and line["role"] == "agent"}
    options = {"t_ns": 0, "node": "runner", "kind": "options", "hosts": len(hosts)}
    assert evidence.complete(Run([*lines, options])).holds is True
    lost = evidence.complete(Run([line for line in [*lines, options] if line["node"] != min(hosts)]))
    assert (lost.holds, lost.spoils, lost.reason) == (None, True, f"1 of {len(hosts)} hosts have no journal")
