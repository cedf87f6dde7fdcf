"""Two made-up runs against each other: what may be claimed, what is refused, how the numbers stand side by side."""

from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

import pytest

from judging.reports import comparison, report
from judging.run import Run
from judging.verdict import Finding

Build = Callable[..., Run]
ROCE = {"transport": "roce", "single_plane": True}
UNTRIMMED = {"overrides": {"trimming.enabled": "false"}}


def found(*runs: Run) -> dict[str, Finding]:
    return {finding.check: finding for finding in comparison.findings_between(runs)}


@pytest.mark.parametrize(
    ("mrc", "roce", "holds"),
    [
        ({}, {"slow_step_ns": 6 * 10**7}, True),  # 1.06 times a step of a second
        ({}, {"slow_step_ns": 4 * 10**7}, False),
        ({}, {"qp_error": True}, True),
        ({"qp_error": True}, {"qp_error": True}, False),
        ({}, {"halts_s": 15.0}, True),  # seven seconds without the end of a step
        ({}, {"halts_s": 0.0}, None),  # no step at all
        ({}, {"slow_step_ns": 10**9, "socket_drops": 1}, None),
        ({"waiting": 0.5}, {"slow_step_ns": 10**9}, None),
    ],
)
def test_the_baseline_must_fail_or_be_slower_and_the_evidence_sound(made_up, mrc, roce, holds) -> None:
    claim = found(made_up(**mrc), made_up(**roce, changed=ROCE))["baseline worse"]
    assert claim.holds is holds, claim.reason


def streams(run: Run, faults: list[int], reference: Sequence[int] = (100, 100)) -> Run:
    """The run with flows of these bytes per second in its two phases in place of training steps."""
    lines = [line for line in run.lines if line["kind"] != "step"]
    for name, rates in (("reference", reference), ("faults", faults)):
        span = run.phases[name]
        lines += [
            {
                "t_ns": span.stop_ns, "node": "h1", "kind": "transfer", "workload": "w", "peer": f"h{2 + flow}",
                "bytes": round(rate * span.length_ns / 10**9), "start_ns": span.start_ns, "end_ns": span.stop_ns,
            }
            for flow, rate in enumerate(rates) if rate
        ]  # fmt: skip
    return Run(sorted(lines, key=lambda line: int(line["t_ns"])))


@pytest.mark.parametrize(
    ("mrc", "roce", "holds", "said"),
    [
        ([100, 100], [100, 50], True, "roce's slowest flow has 0.50 times the rate of mrc's"),
        ([100, 100], [100, 0], True, "0.00 times"),
        ([100, 100], [98, 97], False, "0.97 times"),
        ([50, 100], [100, 100], False, "2.00 times"),
    ],
)
def test_without_steps_the_slowest_flows_are_compared(made_up: Build, mrc, roce, holds: bool, said: str) -> None:
    runs = streams(made_up(), mrc), streams(made_up(changed=ROCE), roce)
    claim = found(*runs)["baseline worse"]
    assert (claim.holds, said in claim.reason) == (holds, True), claim.reason


def test_where_nothing_fails_the_flows_of_the_reference_are_compared(made_up: Build) -> None:
    runs = streams(made_up(), [], [100, 100]), streams(made_up(changed=ROCE), [], [100, 40])
    calm = [Run([line for line in run.lines if line.get("name") != "faults"]) for run in runs]
    assert "0.40 times" in found(*calm)["baseline worse"].reason


def test_the_sentences_name_both_runs_and_their_ratios_in_either_order(made_up: Build) -> None:
    findings = found(made_up(), made_up(dip=0.0, slow_step_ns=15 * 10**8, changed=ROCE))
    assert findings["like with like"].reason.endswith("but for the transport, mrc against roce")
    assert findings["p99 step"].reason == "roce 2500 ms, 2.50 times mrc's 1000 ms"
    assert findings["p99 step"].figures == {"ratio": 2.5}
    assert findings["goodput"].figures["ratio"] == pytest.approx(0.8, abs=0.02)
    assert "2.50 times mrc's" in findings["baseline worse"].reason
    claim = found(made_up(slow_step_ns=10**9, changed=ROCE), made_up())["baseline worse"]
    assert claim.holds is True
    assert "roce's p99 step is 2.00 times mrc's" in claim.reason


@pytest.mark.parametrize(
    ("after_s", "routes"),
    [(None, "never change"), (0.1, "avoid a dead link after 0.1 s"), (0.0, "avoid a dead link after 0 s")],
)
def test_a_comparison_says_that_the_baseline_has_one_plane_and_when_it_is_rerouted(made_up, after_s, routes) -> None:
    """Only the baseline is ever rerouted: beside another transport this is no second difference."""
    mrc, roce = made_up(), made_up(changed={**ROCE, "reconvergence_s": after_s})
    findings = found(mrc, roce)
    assert findings["like with like"].holds is True
    assert findings["one plane"].reason.startswith("roce has all planes' rate on one, ")
    assert f"its routes {routes}" in findings["one plane"].reason
    assert f"routes that {routes}" in report.baseline(roce.options)


def test_two_baselines_that_are_rerouted_otherwise_differ_in_that(made_up: Build) -> None:
    often, never = (made_up(changed={**ROCE, "reconvergence_s": after_s}) for after_s in (0.1, None))
    assert "routing's reconvergence, 0.1 against none" in found(often, never)["like with like"].reason


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"seed": 8}, "the seed (7 and 8)"),
        ({"scenario": "other"}, "the scenario"),
        ({"host_rate_bps": 1}, "the rate of a host"),
        ({"phases": {"faults": 3.0}}, "the lengths of the phases"),
        (UNTRIMMED, "more than one thing differs: the transport and keys of the plan"),
    ],
)
def test_nothing_is_claimed_of_runs_that_are_not_alike(made_up: Build, changed: dict[str, Any], word: str) -> None:
    findings = found(made_up(), made_up(slow_step_ns=10**9, changed={**ROCE, **changed}))
    assert list(findings) == ["like with like"]
    assert findings["like with like"].holds is None
    assert word in findings["like with like"].reason


@pytest.mark.parametrize(("value", "holds"), [("/tmp/mine.py:Mine", True), ("oblivious", None)])
def test_an_algorithm_in_a_file_is_one_difference_with_its_code(made_up: Build, value: str, holds: bool | None) -> None:
    hashes = {"program": "1", "scenario": "2", "plan": "3", "transport": "4", "switch": "5", "lab": "6"}
    other = {"settings": {"selection": value}, "hashes": {**hashes, "transport": "7"}}
    finding = found(made_up(changed={"hashes": hashes}), made_up(changed=other))["like with like"]
    assert finding.holds is holds
    assert (holds is None) == ("the transport's code" in finding.reason)


def test_other_faults_are_not_the_same_timeline_but_the_single_planes_are(made_up: Build) -> None:
    def moved(target: str) -> Run:
        lines = made_up(changed=ROCE).lines
        return Run([{**line, "target": target} if line["kind"] == "fault" else line for line in lines])

    assert found(made_up(), moved("p0l0-p0s1"))["like with like"].holds is True
    assert found(made_up(), moved("p1l0-p1s1"))["like with like"].holds is True
    assert found(made_up(), moved("p0l1-p0s1"))["like with like"].holds is None


@pytest.mark.parametrize(
    ("trimmed", "dropped", "holds"),
    [
        ({"trims": 5}, {"vanished": 5}, False),  # no more paths abandoned than with it
        ({"trims": 5, "abandoned": False}, {"vanished": 5}, True),
        ({"trims": 5, "abandoned": False}, {}, None),  # nothing was lost
        ({"abandoned": False}, {"vanished": 5}, None),  # nothing was trimmed
    ],
)
def test_without_trimming_packets_vanish_and_paths_are_abandoned(made_up, trimmed, dropped, holds) -> None:
    def build(abandoned: bool = True, **changes: Any) -> Run:
        return Run([line for line in made_up(**changes).lines if abandoned or line["kind"] != "ev"])

    findings = found(build(**trimmed), build(**dropped, changed=UNTRIMMED))
    reason = findings["worse without trimming"].reason
    assert findings["worse without trimming"].holds is holds, reason
    assert "timeouts" in reason
    assert "first bytes" not in reason, "a run without flows has no first bytes, and no pauses"
    assert "pause" not in reason


def test_each_number_stands_beside_the_other_runs(made_up: Build) -> None:
    runs = [made_up(vanished=4), made_up(dip=0.0, slow_step_ns=10**9, qp_error=True)]
    assert comparison.names(runs) == ["mrc, seed 7 (1)", "mrc, seed 7 (2)"]
    first, second = comparison.as_json(runs)["runs"].values()
    assert (first["queue pairs that failed"], second["queue pairs that failed"]) == ("0", "1")
    assert (first["step time slowest, faults"], second["step time slowest, faults"]) == ("1000 ms", "2000 ms")
    assert (first["switch drops: by the P4 program"], second["switch drops: by the P4 program"]) == ("4", "0")
    assert first["paths abandoned"] == "1"
    ElementTree.fromstring(comparison.picture(runs))


def test_runs_are_named_after_what_tells_them_apart_and_the_text_obeys_no_escape_sequence(made_up: Build) -> None:
    assert comparison.names([made_up(), made_up(changed=ROCE)]) == ["mrc", "roce"]
    assert comparison.names([made_up(), made_up(changed=UNTRIMMED)]) == ["mrc", "mrc (trimming.enabled=false)"]
    assert comparison.names([made_up(), made_up(changed={"seed": 9})]) == ["mrc, seed 7", "mrc, seed 9"]
    runs = [made_up(), made_up(changed={"transport": "mrc\x1b]0;owned\x07"})]
    text = comparison.summary(runs)
    assert "mrc\N{REPLACEMENT CHARACTER}]0;owned\N{REPLACEMENT CHARACTER}" in text
    assert not {"\x1b", "\x07"} & set(text)


def test_page_and_text_say_what_is_shown(made_up: Build) -> None:
    runs = [made_up(), made_up(slow_step_ns=2 * 10**9, changed=ROCE)]
    for told in (comparison.html(runs), comparison.summary(runs)):
        assert "baseline worse" in told
        assert "3.00 times" in told
