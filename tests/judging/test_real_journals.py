"""Journals of real runs on machines that stood still now and then: what they are judged to be, in CI, for good.

Each was made under planted noise (`benchmarks/planted.py`) or on a busy machine, and thinned (`README.md`).
"""

import json
import lzma
from pathlib import Path

import pytest

from judging import evidence
from judging.judge import verdict_of
from judging.measures import stalls
from judging.reports import plots
from judging.run import Run
from judging.verdict import Verdict
from running.assessment import setting_of
from scenarios import library
from topo.plan import Plan
from topo.planfile import load_plan

JOURNALS = Path(__file__).parent / "journals"


def plan_of(run: Run) -> Plan:
    """The plan that the run was made with: these folders hold no plan of their own."""
    return load_plan(run.options["plan_source"], run.options["overrides"])


def load(name: str) -> Run:
    with lzma.open(JOURNALS / f"{name}.jsonl.xz", "rt") as file:
        return Run([json.loads(line) for line in file])


def judged(run: Run) -> Verdict:
    scenario = library.find(str(run.options["scenario"]))
    return verdict_of(run, list(scenario.checks(setting_of(run.options, plan_of(run)))))


EXPECTED = {
    # 30.7 % of the line rate, once judged false: most of the phase spoilt, the machine 92 % busy
    "collision-freeze": ("unknown", "line rate", "the lab did not keep up"),
    # a broken transport under mild noise on a busy machine, at 4 Mb/s with messages of some six packets: each message
    # waits for a repair of its own
    "link-flap-roce-mild": ("unknown", "fault cost", "in steps of 13.3 round trips hosts mostly wait"),
    # both plateaus had as many stalls as not, and counted as measured, at 0 % of the reference: judged false
    "nic-port-freeze": ("unknown", "half at once", "known to within 6.9%: 4 stalls, the longest 508 ms"),
    # messages of some six packets at 4 Mb/s, judged false at 90.1 %: each loss was of a message's end, which takes two
    # round trips more to notice, and hosts waited for round trips even without faults
    "switch-reboot-slow": ("unknown", "load", "links carried 54% of their rate"),
    "link-flap-freeze": ("unknown", "fault cost", "4 stalls, the longest 799 ms at 17.73 s"),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_real_run_on_a_noisy_machine_is_what_it_was(name: str) -> None:
    word, check, reason = EXPECTED[name]
    verdict = judged(load(name))
    assert verdict.word == word, [finding for finding in verdict.findings if finding.holds is not True]
    assert reason in next(finding for finding in verdict.findings if finding.check == check).reason


def test_every_fixture_is_judged_and_small() -> None:
    files = {path.name.removesuffix(".jsonl.xz"): path for path in JOURNALS.glob("*.xz")}
    assert set(files) == set(EXPECTED)
    assert all(path.stat().st_size < 110_000 for path in files.values())


def test_without_the_evidence_of_lateness_the_transport_was_blamed() -> None:
    whole = load("collision-freeze")
    blind = Run([line for line in whole.lines if line["kind"] not in ("stall", "cpu")])
    assert next(f for f in judged(blind).findings if f.check == "line rate").holds is False


def test_stalls_of_a_real_run_name_hosts_switches_and_processors() -> None:
    run = load("collision-freeze")
    found = stalls.stalls(run)
    assert {"switches", "cpu0", "cpu1", "h0"} <= {who for stall in found for who in stall.who}
    assert "ms at" in evidence.machine(run).reason
    assert plots.STALL in plots.goodput_over_time([("mrc", run)])
