"""The report is one self-contained page that says what the run says; the same numbers for programs, with units."""

import csv
import json
import re
import shlex
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

from cli import main as cli
from judging import checks
from judging.judge import verdict_of
from judging.measures import paths
from judging.reports import comparison, page, report
from judging.reports.figures import figures, write_csv
from judging.run import Run
from judging.story import PaperRow, Story
from judging.verdict import Finding, conclude
from running.directory import find

Build = Callable[..., Run]
STORY = Story("A made-up run", "What <was> done & why.", (PaperRow("5", "flaps", "negligible"),))


class Balance(HTMLParser):
    """Fails on a tag that closes what it did not open."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attributes if name == "id"]
        if tag != "meta":
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attributes if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


def test_the_page_is_whole_self_contained_and_escaped(made_up: Build) -> None:
    run = made_up(dip=0.3)
    page = report.html(run, STORY, verdict_of(run, checks.always()))
    parser = Balance()
    parser.feed(page)
    assert parser.stack == []
    assert len(parser.ids) == len(set(parser.ids))
    assert "What &lt;was&gt; done &amp; why." in page
    # Nothing is fetched: the only addresses are the names of XML namespaces and the drawing's metadata.
    fetched = re.findall(r'(?:src|href)="(?!#)([^"]*)"', page)
    assert fetched == []
    for word in ("goodput", "Recovery", "Training steps", "Path health", "Planes", "paper measured", "12,500 times"):
        assert word in page, word


def test_the_same_run_gives_the_same_page(made_up: Build) -> None:
    run = made_up()
    verdict = verdict_of(run, checks.always())
    assert report.html(run, STORY, verdict) == report.html(made_up(), STORY, verdict)


def test_an_empty_run_still_has_a_page() -> None:
    run = Run([])
    verdict = verdict_of(run, checks.always())
    assert verdict.holds is None
    assert "unknown" in report.html(run, STORY, verdict)
    assert report.summary(run, STORY, verdict)


def test_the_summary_says_the_verdict_and_each_finding(made_up: Build) -> None:
    run = made_up(wrong_bytes=5)
    text = report.summary(run, STORY, verdict_of(run, checks.always()))
    assert text.startswith("A made-up run: false\n")
    assert "✗  bytes right" in text
    assert "20 bytes differ" in text


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b1m"


def test_the_summary_obeys_no_escape_sequence_of_a_run(made_up: Build) -> None:
    """A run folder may come from another person: its words are shown, and the terminal obeys none of them."""
    made = made_up(changed={"transport": f"mrc{HOSTILE}", "setting_changes": {"a": "b\n\u202eforged: true"}})
    command = {"node": "h0", "kind": "command", "host": "h0", "rank": 0}
    ended = {"state": "stop", "status": 0, "output": f"a\tb\u2009c {HOSTILE}\nnext"}
    started = {"t_ns": 1, "state": "start", "words": "w"}
    run = Run([*made.lines, {**command, **started}, {"t_ns": 2, **command, **ended}])
    verdict = conclude([Finding(f"check{HOSTILE}", True, f"reason{HOSTILE}\n✓  forged")])
    text = report.summary(run, Story(f"title{HOSTILE}", ""), verdict)
    assert not set("\x1b\x07\x9b\u202e") & set(text)
    assert "title\N{REPLACEMENT CHARACTER}]0;owned" in text
    assert "\n✓  forged" not in text
    assert "  a\tb\u2009c \N{REPLACEMENT CHARACTER}]0" in text
    assert "\n  next\n" in text


def test_columns_of_numbers_with_units_and_intervals_are_set_right_and_names_that_begin_with_digits_are_not() -> None:
    rows = [["2 bytes, one leaf", "+0.6%", "198.5 % (197 % to …)", ""], ["32 KB", "−12 %", "3.0 ms", "5"]]
    head, *_ = page.table(["quantity", "difference", "here", "paper"], rows).split("</thead>")
    assert head.count('class="number"') == 3
    assert "<th>quantity</th>" in head
    assert 'class="number"' not in page.table(["note"], [["(none)"], ["(not run)"]])


def test_a_journal_of_somebody_else_puts_no_script_into_a_report(made_up: Build) -> None:
    name = 'x"><script>alert(1)</script>'
    lines = [{**line, "loss": 1.0, "workload": name} for line in made_up().kind("step")]
    run = Run(sorted([*made_up(changed={"transport": name}).lines, *lines], key=lambda line: int(line["t_ns"])))
    shown = report.html(run, STORY, verdict_of(run, checks.always()))
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert "default-src 'none'" in shown


@pytest.mark.parametrize(
    "options",
    [
        {"source": "smoke; touch x"},
        {"overrides": {"fabric.without": '["p0l0-p0s0", "p1s1"]'}},
        {"settings": {"sizes": [[1, 2]]}},
        {"plan_source": "my plan.toml"},
        {"added_faults": ["link-down p0l0-p0s0 @1s"]},
        {"calibration": {"source": "this machine", "port_rate_bps": 1_234_567_800}},
    ],
)
def test_the_command_that_repeats_a_run_is_words_for_a_shell(made_up: Build, options: dict[str, object]) -> None:
    words = shlex.split(report.again(made_up(changed=options)), comments=True, posix=True)
    assert words[:2] == ["./lab", "run"]
    (value,) = options.values()
    wanted: list[str] = {
        "source": [str(value)],
        "overrides": ["--set", 'fabric.without=["p0l0-p0s0", "p1s1"]'],
        "settings": ["--setting", "sizes=[[1, 2]]"],
        "plan_source": ["--plan", str(value)],
        "added_faults": ["--fault", "link-down p0l0-p0s0 @1s"],
        "calibration": ["--rate", "1234.5678"],
    }[next(iter(options))]
    at = words.index(wanted[0])
    assert words[at : at + len(wanted)] == wanted


@pytest.mark.parametrize("stop_ns", [10**18, 10**17])
def test_a_phase_of_years_is_refused_before_it_fills_memory(made_up: Build, stop_ns: int) -> None:
    lines = [line for line in made_up().lines if line["kind"] != "step" and line.get("name") != "reference"]
    lines += [
        {"t_ns": t_ns, "node": "runner", "kind": "phase", "name": "reference", "state": state}
        for t_ns, state in ((0, "start"), (stop_ns, "stop"))
    ]
    run = Run(sorted(lines, key=lambda line: int(line["t_ns"])))
    with pytest.raises(ValueError, match="must be at most 20,000,000 times"):
        report.html(run, STORY, verdict_of(run, checks.always()))


def test_a_fabric_of_more_paths_than_a_plan_has_is_refused(made_up: Build) -> None:
    run = made_up(changed={"fabric": {"planes": 100_000, "spines": 100_000}})
    with pytest.raises(ValueError, match=r"planes × spines must be at most 65,536 \(got 10,000,000,000\)"):
        paths.strips(run)


def test_figures_are_numbers_with_their_units(made_up: Build) -> None:
    found = figures(made_up(dip=0.5))
    reference = next(phase for phase in found["phases"] if phase["phase"] == "reference")
    # Four hosts on two planes of 8 Mb/s, of which 80 % is acknowledged.
    assert reference["goodput_bps"] == pytest.approx(4 * 2 * 8e6 * 0.8, rel=0.01)
    assert (reference["start_s"], reference["length_s"]) == (2.0, 10.0)
    assert [step["median_ns"] for step in found["steps"]] == [10**9] * 4
    (fault,) = found["faults"]
    assert (fault["start_s"], fault["stop_s"], fault["by_hand"]) == (14.0, 16.0, False)
    assert found["recovery"][0]["cost_ns"] == pytest.approx(0, abs=1e6)
    json.dumps(found)


def test_csv_files_have_heads_with_units_and_add_up(made_up: Build, tmp_path) -> None:
    run = made_up()
    files = {path.name: list(csv.reader(path.open())) for path in write_csv(run, tmp_path / "figures")}
    assert files["goodput.csv"][0] == ["time_s", "goodput_bps"]
    acked = sum(float(bps) / 8 * 0.25 for _, bps in files["goodput.csv"][1:])
    assert acked == pytest.approx(figures(run)["acked_bytes"], rel=0.01)
    assert len(files["steps.csv"]) - 1 == 23
    assert dict(files["counters.csv"][1:])["retransmits"] == str(figures(run)["counters_packets"]["retransmits"])


def test_a_run_and_its_report_and_its_comparison_speak_json(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = ("--runs", str(tmp_path))
    quick = ("run", "smoke", "--world", "simulated", "--seed", "3", "--time", "0.5", *runs)
    cli.main([*quick, "--format", "json"])
    told: dict[str, Any] = json.loads(capsys.readouterr().out)  # nothing else was printed
    assert told["options"]["key"]
    assert any(phase["goodput_bps"] > 0 for phase in told["figures"]["phases"])
    cli.main(["report", *runs, "--format", "json", "--csv", str(tmp_path / "csv")])
    assert json.loads(capsys.readouterr().out)["figures"] == told["figures"]
    assert {path.name for path in (tmp_path / "csv").iterdir()} == {"goodput.csv", "steps.csv", "counters.csv"}
    for seed in ("4", "5"):
        cli.main([*quick[:5], seed, *quick[6:], "--plain"])
    names = [f"smoke/{path.parent.name}" for path in sorted(tmp_path.glob("smoke/*/options.json"))]
    capsys.readouterr()
    assert cli.main(["compare", *names, *runs, "--format", "json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert len(compared["figures"]) == 3
    assert [finding["check"] for finding in compared["findings"]] == [
        "mrc, seed 4: like with like", "mrc, seed 5: like with like",
    ]  # fmt: skip
    assert "mrc, seed 5" in (find(tmp_path, "latest") / "compare.html").read_text()


def test_of_three_runs_each_is_laid_beside_the_first(made_up: Build) -> None:
    slow = {"overrides": {"queues.depth": "3"}}
    found = comparison.findings_between(
        [made_up(), made_up(changed={"transport": "mrc-oblivious"}), made_up(changed=slow)]
    )
    checks = {finding.check: finding for finding in found}
    assert checks["mrc-oblivious: like with like"].reason.endswith("mrc against mrc-oblivious")
    assert checks["mrc (queues.depth=3): like with like"].holds is True
    assert comparison.summary([made_up(), made_up(), made_up()])
