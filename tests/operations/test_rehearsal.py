"""Changes on paper and one short run: what is refused, what has no path, what the job notices."""

import argparse
import json
import re
from pathlib import Path

import pytest

from cli.main import main
from judging.measures import steps
from judging.run import Run
from operations.commands.rehearse import teller
from operations.rehearsal.change import ACTIONS, ChangeError, Planned, read
from operations.rehearsal.orders import best, key, orders, sequence
from operations.rehearsal.rehearse import (
    HUNT_SEEDS,
    RehearsalResult,
    RehearsedRun,
    Seen,
    background,
    compared,
    outage_s,
    outcome,
    rehearsed,
    spec,
)
from operations.rehearsal.report import html, other_order
from running.runner import make_run
from studies.farm import Inline, Job
from studies.sweeping.proportion import share
from topo.fault import VERBS

CHANGES = Path(__file__).parents[2] / "docs" / "changes"
HEAD = 'name = "a change"\nplan = "tiny"\nseconds = 4\nflaps = 0\n'
STEP = '[[step]]\ndo = "cut"\ntarget = "p0l0-p0s0"\nat_s = 1\n'

REBOOT = STEP.replace("cut", "reboot").replace("p0l0-p0s0", "p0s0")
REBOOT_HEAD = HEAD + REBOOT


def written(folder: Path, text: str) -> Path:
    path = folder / "change.toml"
    path.write_text(text)
    return path


def result(planned: Planned, *slowdowns: float) -> RehearsalResult:
    """Of unnoticed runs with these longest steps."""
    outcomes = [RehearsedRun(n, False, value, 1.0, 0, None, (), 0) for n, value in enumerate(slowdowns)]
    return RehearsalResult(planned, outcomes, (), share(0, len(outcomes)), outage_s(planned))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", r"change.toml: must be TOML \(Invalid value"),
        (".".join(["a"] * 24_000) + " = 1", r"change.toml: line 1 must have at most 16 dots .*got 23999"),
        ("x = " + "[" * 5000, r"change.toml: must be TOML \(it is nested too deeply"),
        (HEAD, r"step is missing"),
        (HEAD.replace('"tiny"', '"huge"') + STEP, r"change.toml:\d: .*huge.*tiny"),
        (HEAD.replace("seconds = 4", "seconds = 400") + STEP, r"change.toml:3: seconds is 400; it must be .*120"),
        ("colour = 1\n" + HEAD + STEP, r"change.toml:1: colour is no key here; valid: name, plan"),
        (HEAD + STEP + STEP.replace('"cut"', '"fix"'), r"toml:10: step 2: step\[1\].do is 'fix'; it must be one of"),
        (HEAD + STEP.replace("p0l0-p0s0", "p0l0-p9s0"), r"change.toml:5: step 1: .*p9s0"),
        (HEAD + STEP.replace("at_s = 1", "at_s = 9"), r"change.toml:8: step 1: step\[0\].at_s is 9; it must be .*4"),
        (HEAD + STEP + "for_s = 8\n", r"change.toml:9: step 1: step\[0\].for_s is 8"),
        (
            HEAD + STEP.replace("cut", "rate"),
            r"change.toml:5: step 1: rate: mbps .* must be a number between 0.001 and 8000000 \(got none\)",
        ),
        (REBOOT_HEAD + "for_s = 1\n", r"reboot is over by itself"),
        (HEAD + STEP.replace("cut", "move hosts"), r"toml:5: step 1: 'move hosts' cannot be .*one plan.*Valid"),
        (HEAD + STEP.replace("cut", "table"), r"toml:5: step 1: 'table' cannot be .*Valid are drain"),
        (HEAD + STEP + "why = 1\n", r"toml:9: step\[0\].why is no key here; valid: do, target, at_s"),
        (HEAD + STEP.replace('"cut"', "7"), r"toml:6: step 1: step\[0\].do is 7; it must be"),
        (HEAD + STEP.replace("at_s = 1", 'at_s = "1"'), r"toml:8: step 1: step\[0\].at_s is '1'; it must be"),
        (HEAD + STEP.replace("at_s = 1\n", ""), r"toml:5: step 1: step\[0\].at_s is missing"),
        (HEAD + STEP.replace("p0l0-p0s0", "h0"), r"toml:5: step 1: .*p0l0-p0s0|toml:5: step 1: .*link"),
        (HEAD + "[fabric]\nplanets = 2\n" + STEP, r"toml:6: fabric.planets is no key here; valid: .*planes"),
        (HEAD + "[fabric]\nplanes = 99\n" + STEP, r"toml:6: fabric.planes=99: fabric.planes is 99; it must be"),
        (HEAD + "[noticed]\nstep_time = 0.5\n" + STEP, r"toml:6: noticed.step_time is 0.5; it must be .*1.05"),
        (HEAD.replace("flaps = 0", "flaps = 99") + STEP, r"toml:4: flaps is 99; it must be .*20"),
        (HEAD + "safe = 1.5\n" + STEP, r"toml:5: safe is 1.5; it must be"),
        (HEAD.replace("a change", r"a\u001b[2J\nsafe") + STEP, r"toml:1: name is 'a\\x1b\[2J\\nsafe'; .* one line"),
    ],
)
def test_a_bad_change_file_names_line_rule_and_choices(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ChangeError, match=said):
        read(written(tmp_path, text))


def test_every_action_is_a_fault_verb() -> None:
    assert set(ACTIONS.values()) <= set(VERBS)


@pytest.mark.parametrize(
    ("name", "outage"),
    [("spines-one-by-one", 0), ("spines-at-once", 0), ("a-plane-at-a-time", 0), ("single-homed-leaf", 1)],
)
def test_shipped_changes_leave_paths_or_are_refused_to_be_called_safe(name: str, outage: int) -> None:
    planned = read(CHANGES / f"{name}.toml")
    assert outage_s(planned) == outage
    assert result(planned, *[1.0] * 1000).verdict == ("not safe" if outage else "safe")


@pytest.mark.parametrize(("verb", "targets", "seconds"), [
    ("drain", ["p0s0", "p0s1", "p1s0", "p1s1"], 2), ("drain-port", ["h1.p0"], 0), ("drain-port", ["h1.p0", "h1.p1"], 2),
    ("replace-optics", ["h1"], 2),
])  # fmt: skip
def test_drains_of_every_spine_or_every_port_of_a_nic_leave_no_path_meanwhile(tmp_path, verb, targets, seconds) -> None:
    steps = "".join(STEP.replace("cut", verb).replace("p0l0-p0s0", target) + "for_s = 2\n" for target in targets)
    assert outage_s(read(written(tmp_path, HEAD + steps))) == seconds


def test_the_background_is_drawn_from_the_seed_and_leaves_the_change_alone(tmp_path: Path) -> None:
    planned = read(written(tmp_path, HEAD + STEP))
    drawn = [background(planned, seed, 8) for seed in range(20)]
    assert drawn[3] == background(planned, 3, 8)
    assert len(set(drawn)) == 20
    assert all(fault.target != "p0l0-p0s0" for faults in drawn for fault in faults)
    upside_down = read(written(tmp_path, HEAD + STEP.replace("p0l0-p0s0", "p0s0-p0l0")))
    assert drawn == [background(upside_down, seed, 8) for seed in range(20)]


def test_two_orders_are_compared_seed_by_seed(tmp_path: Path) -> None:
    planned = read(written(tmp_path, HEAD + STEP))
    found = compared(result(planned, 1.0, 1.2, 1.1, 1.4, 1.3), result(planned, 2.0, 2.1, 2.2, 2.3, 2.4))
    assert found is not None
    assert (round(found.mean, 6), found.clear) == (1.0, True)
    close = compared(result(planned, 1.0, 1.2, 1.1, 1.4, 1.3), result(planned, 1.2, 1.0, 1.3, 1.1, 1.4))
    assert close is not None
    assert not close.clear


def test_the_page_links_to_the_replays_where_they_lie_beside_it(tmp_path: Path) -> None:
    planned = read(written(tmp_path, HEAD + STEP))
    statement = result(planned, 1.0, 1.0)
    page = html([statement, statement], [tmp_path / "rehearsal/1", tmp_path / "rehearsal/a #2"])
    assert re.findall('href="([^"]*)"', page) == ["replay.html", "../a%20%232/replay.html"]


def test_the_runs_of_a_hunt_are_counted_by_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    tell = teller("a change", argparse.Namespace(seeds=1, hunt=2))
    for seed in (1, HUNT_SEEDS, HUNT_SEEDS + 1):
        tell(RehearsedRun(seed, False, 1.0, 1.0, 0, None, (), 0))
    said = [line.split(": ")[1] for line in capsys.readouterr().err.splitlines()]
    assert said == ["seed 1 of 1", "hunt 1 of 2", "hunt 2 of 2"]


@pytest.mark.parametrize(
    ("slowest", "status", "said"),
    [
        (1.1, 0, "safe: with 95 % confidence at most 90% of such changes are noticed"),
        (4.0, 1, "not safe: with 95 % confidence more than 90% of such changes are noticed"),
    ],
)
def test_the_command_says_what_its_runs_show_and_ends_with_the_verdict(
    slowest: float, status: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    """Runs are made up: on every seed the same longest step, and a run of the hunt that is twice as slow."""

    def made_up(scratch: str, job: Job) -> Seen:
        return Seen(job.seed, slowest * (2 if job.seed >= HUNT_SEEDS else 1), 1.5, 0.9, 0, "", 500.0, 0.25)

    def kept(spec: object, root: Path) -> Path:
        (tmp_path / "run").mkdir(exist_ok=True)
        return tmp_path / "run"

    monkeypatch.setattr("studies.farm.Pool", lambda workers, work: Inline(made_up))
    monkeypatch.setattr("operations.rehearsal.report.make_run", kept)
    monkeypatch.setattr("operations.rehearsal.report.export.beside_report", lambda folder: None)
    change = written(
        tmp_path,
        HEAD
        + "safe = 0.9\ntokens_per_step = 4000000\n[noticed]\nstep_time = 2\ngoodput = 0.5\n"
        + STEP
        + "for_s = 2\n",
    )
    words = ["rehearse", str(change), "--seeds", "60", "--hunt", "1", "--runs", str(tmp_path)]
    assert main(words) == status
    printed = capsys.readouterr()
    assert said in printed.out
    took = f"the longest step took {1000 * slowest:.0f} ms instead of 500 ms, {2 * slowest:.2f} times as long"
    assert f"worst run: seed {HUNT_SEEDS}; {took}; the job lost 0.25 steps, 1,000,000 tokens; besides" in printed.out
    assert printed.err.count("noticed") == 61
    assert "a change" in (tmp_path / "run" / "rehearsal.html").read_text()
    assert main([*words, "--against", str(change), "--orders", "1", "--json"]) == status
    told = json.loads(capsys.readouterr().out)
    assert [one["verdict"] for one in told["changes"]] == ["safe" if status == 0 else "not safe"] * 2
    assert told["changes"][0]["worst"]["hunted"]
    assert told["changes"][0]["worst"]["lost_tokens"] == 1_000_000


@pytest.mark.parametrize(
    ("limit", "noticed"),
    [("step_ms = 650", False), ("step_ms = 590", True), ("tokens = 600", False), ("tokens = 400", True)],
)
def test_a_change_is_noticed_in_the_terms_of_the_job(limit: str, noticed: bool, tmp_path: Path) -> None:
    """The longest step takes 1.2 times 500 ms, and half a step of 1,000 tokens is lost."""
    text = HEAD + f"tokens_per_step = 1000\n[noticed]\n{limit}\n" + STEP
    planned = read(written(tmp_path, text))
    assert outcome(planned, Seen(1, 1.2, 1.5, 1.0, 0, "", 500.0, 0.5), 0).noticed == noticed
    with pytest.raises(ChangeError, match=r"noticed.tokens needs tokens_per_step"):
        read(written(tmp_path, HEAD + "[noticed]\ntokens = 5\n" + STEP))


@pytest.mark.slow
def test_a_switch_that_is_the_only_one_is_noticed_and_a_drain_is_not(tmp_path: Path) -> None:
    bad = rehearsed(read(CHANGES / "single-homed-leaf.toml"), [1])
    assert bad.outcomes[0].noticed
    assert bad.by_step() == [1]
    (run,) = bad.outcomes
    assert 500 < run.usual_ms < 5000
    assert run.slowdown - 1.2 < run.lost_steps < run.slowdown + 1  # the one long step, and little else
    drained = HEAD + STEP.replace("cut", "drain").replace("p0l0-p0s0", "p0s0") + "for_s = 2\n"
    good = rehearsed(read(written(tmp_path, drained)), [1])
    assert not good.outcomes[0].noticed
    assert good.outcomes == rehearsed(read(written(tmp_path, drained)), [1]).outcomes


BATCHES = {"spines-across-planes": "p0s0 p1s0 p0s1 p1s1", "spines-by-plane": "p0s0 p0s1 p1s0 p1s1"}


def test_the_shipped_pair_has_the_same_steps_in_two_orders_and_each_is_an_order_of_the_other() -> None:
    across, by = (read(CHANGES / f"{name}.toml") for name in BATCHES)
    assert [step.target for step in across.steps] == BATCHES["spines-across-planes"].split()
    assert sorted(step.at_s for step in across.steps) == sorted(step.at_s for step in by.steps)
    assert key(across.steps) in {key(one.steps) for one in orders(by, 10)}
    assert len(orders(by, 10)) == 5  # of six ways to choose the two that come first
    assert len(orders(by, 2)) == 2


def test_orders_that_do_not_fit_are_left_out_and_the_same_order_is_no_other_one(tmp_path: Path) -> None:
    late = STEP.replace("at_s = 1", "at_s = 3.5") + "for_s = 0.5\n"
    first = STEP.replace("p0l0-p0s0", "p0l0-p0s1") + "for_s = 3\n"
    assert orders(read(written(tmp_path, HEAD + first + late)), 5) == []  # three seconds from 3.5 on are too many
    assert orders(read(written(tmp_path, HEAD + STEP)), 5) == []
    same = [STEP + "for_s = 2\n", STEP.replace("at_s = 1", "at_s = 2.5") + "for_s = 1\n"]
    assert orders(read(written(tmp_path, HEAD + "".join(same))), 5) == []  # the cable would be cut twice at a time


def test_the_best_of_other_orders_is_the_one_with_the_shortest_steps(tmp_path: Path) -> None:
    planned = read(CHANGES / "spines-by-plane.toml")
    given = result(planned, 1.6, 1.7, 1.6, 1.7, 1.6)
    worse, better = (result(one, *own) for one, own in zip(orders(planned, 2), ([2.0] * 5, [1.1] * 5), strict=True))
    found = best(given, [worse, better])
    assert found is not None
    assert (found[0], round(found[1].mean, 2), found[1].clear) == (better, -0.54, True)
    assert best(given, []) is None
    assert other_order(given, []) == "no other order of the steps was tried (--orders N tries some)"
    said = other_order(given, [worse, better])
    assert said.startswith(
        f"2 other orders of the steps tried; better is {sequence(better.planned.steps)}: longest step -0.54"
    )
    assert "none is clearly better" in other_order(better, [worse])


def test_two_orders_of_one_change_differ_significantly() -> None:
    across, by = (rehearsed(read(CHANGES / f"{name}.toml"), range(1, 7)) for name in BATCHES)
    found = compared(across, by)
    assert found is not None
    assert found.low is not None
    assert found.low > 0.2, found
    assert (across.noticed.count, by.noticed.count) == (0, 6)


SHAKY = """
name = "noticed about every second time"
plan = "tiny"
seconds = 5
flaps = 2
[noticed]
step_time = 1.16
goodput = 0.5
[[step]]
do = "replace"
target = "p0s0"
at_s = 1
for_s = 3
"""


def test_intervals_of_rehearsals_hold_the_share_of_a_direct_sweep(tmp_path: Path) -> None:
    """Rehearsals of 8 seeds each against a share that is counted from the journals of 24 other runs, within its error.

    (Of 160 such runs 90 were noticed, and the intervals hold this share as well.)
    """
    planned = read(written(tmp_path, SHAKY))
    direct = []
    for seed in range(1001, 1025):
        run = Run.open(make_run(spec(planned, seed, planned.flaps), tmp_path))
        times = steps.steps(run)
        usual = steps.times(steps.of_phase(times, run.phases["reference"]))
        assert usual is not None
        longest_ns = max(one.total_ns for one in steps.of_phase(times, run.phases["faults"]))
        direct.append(longest_ns > planned.noticed.step_time * usual.median_ns)
    counted = share(sum(direct), len(direct))
    assert 0.2 < counted.low < counted.high < 0.8
    found = [rehearsed(planned, range(1 + 8 * block, 9 + 8 * block)).noticed for block in range(2)]
    assert all(one.low <= counted.high and counted.low <= one.high for one in found), (counted, found)
