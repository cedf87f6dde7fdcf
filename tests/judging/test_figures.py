"""Numbers for programs: JSON with units in the names, comma-separated values, and more than two runs at once."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli import main as cli
from judging.reports import comparison
from judging.reports.figures import figures, write_csv
from judging.run import Run
from running.directory import find

Build = Callable[..., Run]


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


def test_csv_files_have_heads_with_units_and_add_up(made_up: Build, tmp_path: Path) -> None:
    run = made_up()
    files = {path.name: list(csv.reader(path.open())) for path in write_csv(run, tmp_path / "figures")}
    assert files["goodput.csv"][0] == ["time_s", "goodput_bps"]
    acked = sum(float(bps) / 8 * 0.25 for _, bps in files["goodput.csv"][1:])
    assert acked == pytest.approx(figures(run)["acked_bytes"], rel=0.01)
    assert len(files["steps.csv"]) - 1 == 23
    assert dict(files["counters.csv"][1:])["retransmits"] == str(figures(run)["counters_packets"]["retransmits"])


@pytest.mark.slow
def test_a_run_and_its_report_and_its_comparison_speak_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
