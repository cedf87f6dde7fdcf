"""The scenario of a real job: what it runs, what it judges, what it refuses; without namespaces and processes."""

import sys
from dataclasses import replace
from typing import Any

import pytest

from common.journal import Journal
from judging import jobs
from judging.run import Run
from running.directory import RunDirectory
from running.options import Choices
from running.spec import RunSpec
from running.timeline import rehearse
from running.transport_choice import transport
from scenarios import ddp, job, job_port, library
from scenarios.scenario import Setting, carried_out
from topo.planfile import load_plan

PLAN = load_plan("lab")
SETTING = Setting(PLAN, "mrc", 3, {phase.name: phase.seconds for phase in job.SCENARIO.phases})


def test_both_jobs_are_the_same_but_for_name_and_phase_and_fit_into_their_phases():
    clean, faulty = job.programs(SETTING)
    assert [clean.phase, faulty.phase] == ["reference", "faults"]
    assert clean.argv[:-1] == faulty.argv[:-1]
    needed_s = job.START_S + job.steps(SETTING) * job.step_seconds(SETTING)
    assert needed_s <= min(SETTING.phases["reference"], SETTING.phases["faults"])
    assert job.steps(SETTING) >= 30


def test_the_port_is_away_for_longer_than_roce_retries_and_comes_back_within_the_phase():
    timeline = job.timeline(SETTING)
    assert {fault.verb for fault in timeline} == {"link-down", "switch-crash", "port-down"}
    (port,) = [fault for fault in timeline if fault.verb == "port-down"]
    assert port.for_s is not None
    assert port.at_s + port.for_s < SETTING.phases["faults"]


@pytest.mark.parametrize("rate_bps", [3_750_000, 10_000_000, 100_000_000_000])
def test_a_job_makes_as_many_steps_whatever_the_rate_for_phases_last_as_many_round_trips(rate_bps: int):
    slower = PLAN.at_rate(rate_bps)
    assert abs(job.steps(replace(SETTING, plan=slower, pace=slower.pace)) - job.steps(SETTING)) <= 1


@pytest.mark.parametrize("name", library.WITH_PROGRAMS)
@pytest.mark.parametrize("world", ["emulated", "simulated"])
def test_everything_of_it_passes_the_rehearsal_in_both_worlds(name: str, world: str, monkeypatch):
    monkeypatch.setattr(ddp, "torch_python", lambda: sys.executable)
    for chosen in ("mrc", "roce"):
        rehearse(RunSpec(library.find(name), Choices(transport(chosen), PLAN, 1, world=world)))


def test_one_port_is_all_that_breaks_in_the_job_of_that_name_under_either_transport():
    for single_plane in (False, True):
        setting = replace(SETTING, single_plane=single_plane)
        (fault,) = carried_out(setting, job_port.timeline(setting))
        assert (fault.verb, fault.target[:4]) == ("port-down", "h0.p")
        assert fault.for_s is not None
        assert fault.at_s + fault.for_s < job_port.SCENARIO.phases[2].seconds


def run_of(tmp_path, faulty_steps: int, other_bits: int = -1, cause: str = "", diverges_at: int | None = None) -> Run:
    """Two ranks, 10 steps without faults and some with, of which one may have other weights on one rank. From
    `diverges_at` on the loss is not finite."""
    directory = RunDirectory.create(tmp_path, "job", 1)
    directory.write_options({})
    for rank in range(2):
        journal = Journal(directory.journal(f"h{rank}"), f"h{rank}", lambda: 5)
        for name, count, start in (("clean", 10, 1000), ("faulty", faulty_steps, 3000)):
            journal.write("workload", t_ns=start, name=name, workload="program", state="start")
            for step in range(count):
                digest = "other" if name == "faulty" and step == other_bits and rank else f"w{step}"
                fields: dict[str, Any] = {
                    "step": step, "rank": rank, "workload": name, "loss": 2.0 / (step + 1), "weights": digest,
                }  # fmt: skip
                if name == "faulty" and diverges_at is not None and step >= diverges_at:
                    del fields["loss"]
                journal.write("step", t_ns=start + step, compute_ns=1, comm_ns=1, total_ns=2, bytes=4, **fields)
            outcome = "failed" if cause and name == "faulty" else "finished"
            journal.write("workload", t_ns=start + 500, name=name, state="stop", outcome=outcome, cause=cause)
        journal.close()
    journal = Journal(directory.journal("runner"), "runner", lambda: 5)
    for name, start in (("reference", 900), ("faults", 2900)):
        journal.write("phase", t_ns=start, name=name, state="start")
        journal.write("phase", t_ns=start + 1900, name=name, state="stop")
    journal.close()
    return Run.open(directory.path)


@pytest.mark.parametrize(
    ("made", "holds"), [({"faulty_steps": 10}, True), ({"faulty_steps": 10, "other_bits": 4}, False)]
)
def test_weights_are_the_same_only_where_every_bit_is(tmp_path, made, holds):
    finding = jobs.same_weights("clean", "faulty", 10)(run_of(tmp_path, **made))
    assert finding.holds is holds
    assert ("after step 4" in finding.reason) is not holds


def test_a_job_that_died_is_told_with_cause_and_steps_and_a_standard_that_did_not_end_proves_nothing(tmp_path):
    run = run_of(tmp_path, 6, cause="retry_exceeded")
    found = jobs.finished("faulty")(run)
    assert (found.holds, "retry_exceeded" in found.reason) == (False, True)
    assert jobs.finished("clean")(run).holds is True
    found = jobs.same_weights("clean", "faulty", 10)(run)
    assert (found.holds, "after 6 of 10 steps; so far no bit differs" in found.reason) == (False, True)
    assert jobs.same_weights("clean", "faulty", 11)(run_of(tmp_path, 10)).holds is None
    assert jobs.over_before("clean", "faults")(run_of(tmp_path, 10)).holds is True
    assert jobs.over_before("faulty", "faults")(run_of(tmp_path, 10)).holds is None


@pytest.mark.parametrize(("at_ns", "holds"), [(3004, True), (2999, None), (3600, None), (None, None)])
def test_a_fault_shows_something_only_while_the_job_is_under_way(tmp_path, at_ns: int | None, holds: bool | None):
    run = run_of(tmp_path, 10)
    assert run.directory is not None
    if at_ns is not None:
        journal = Journal(RunDirectory(run.directory).journal("more"), "runner", lambda: 5)
        journal.write("fault", t_ns=at_ns, verb="port-down", target="h0.p0", state="begin")
        journal.close()
    finding = jobs.under_way("faulty")(Run.open(run.directory))
    assert finding.holds is holds
    if holds:
        assert finding.reason == "the first fault came after 4 steps of 'faulty'"


def test_the_loss_is_judged_and_drawn(tmp_path):
    from judging.reports import plots

    run = run_of(tmp_path, 10)
    assert jobs.learned("faulty")(run).holds is True
    assert jobs.learned("faulty", share=0.01)(run).holds is False
    drawn = plots.loss_curves(run)
    assert drawn is not None
    assert "Loss of clean and faulty" in drawn


@pytest.mark.parametrize("step", [1, 8])
def test_a_job_whose_loss_becomes_infinite_has_not_learned(tmp_path, step: int) -> None:
    """Its lines leave the loss out from then on, and the last one that they have may be low."""
    finding = jobs.learned("faulty")(run_of(tmp_path, 10, diverges_at=step))
    assert finding.holds is False
    assert finding.reason == f"the loss must be finite at the end (it is not after step {step})"
