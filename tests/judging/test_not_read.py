"""A number that was not read is told as such, and never as 0; a run's end is read."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from cli import main as cli
from judging import checks
from judging.measures import counters, goodput
from judging.reports import comparison, tables
from judging.reports.figures import figures, write_csv
from judging.run import Run
from running.directory import find
from running.view import port_rows
from studies.sweeping.metric import measured

SECOND = 1_000_000_000


def run_of(*samples: tuple[float, Mapping[str, Any]]) -> Run:
    """One host whose only queue pair had these counters at these seconds; the phase is from 1 s to 3 s."""
    lines: list[dict[str, Any]] = [
        {"t_ns": SECOND, "node": "runner", "kind": "phase", "name": "reference", "state": "start"},
        {"t_ns": 3 * SECOND, "node": "runner", "kind": "phase", "name": "reference", "state": "stop"},
    ]
    port = {"port": 1, "plane": 0, "tx_bytes": 0}
    for at_s, counted in samples:
        qps = [{"qp": 1, "peer": "h1", **counted}]
        lines.append({"t_ns": round(at_s * SECOND), "node": "h0", "kind": "sample", "ports": [port], "qps": qps})
    return Run(sorted(lines, key=lambda line: int(line["t_ns"])))


def test_one_sample_at_the_end_tells_the_goodput_of_the_whole_run() -> None:
    # 1,000 bytes in the two seconds since the first phase began: 4,000 bit/s.
    run = run_of((3, {"acked_bytes": 1000, "data_packets": 5}))
    assert goodput.of_phase(run, run.phases["reference"]) == pytest.approx(4000)
    assert counters.qp_totals(run) == {"data_packets": 5, "acked_bytes": 1000}


def test_what_was_counted_before_the_first_phase_is_no_goodput_of_it() -> None:
    # 300 bytes before the phase, 700 in it: 2,800 bit/s.
    run = run_of((0.5, {"acked_bytes": 300}), (1, {"acked_bytes": 300}), (3, {"acked_bytes": 1000}))
    assert goodput.of_phase(run, run.phases["reference"]) == pytest.approx(2800)
    assert counters.qp_totals(run)["acked_bytes"] == 1000


def test_a_run_without_samples_has_no_goodput_and_no_counters(tmp_path) -> None:
    run = run_of()
    assert goodput.of_phase(run, run.phases["reference"]) is None
    assert tables.goodput_rows(run) == [["reference", "2.0 s", "not read", ""]]
    assert {told for _, told in tables.counter_rows(run)} == {"not read"}
    found = figures(run)
    assert found["acked_bytes"] is None
    assert set(found["counters_packets"].values()) == {None}
    assert found["phases"][0]["goodput_bps"] is None
    files = {path.name: path.read_text().splitlines() for path in write_csv(run, tmp_path / "csv")}
    assert files["goodput.csv"] == ["time_s,goodput_bps"]
    assert "retransmits," in files["counters.csv"]
    assert measured(run) == {}
    assert {row[1] for row in comparison.rows([run, run]) if row[0] in tables.COUNTER_TITLES.values()} == set()


@pytest.mark.parametrize("judged", [checks.faults_felt("reference"), checks.switches_trimmed()])
def test_checks_of_counters_say_that_no_host_reported_any(judged: checks.Check) -> None:
    assert judged(run_of()).reason == "no host reported its queue pairs"


def test_a_counter_that_no_queue_pair_has_is_not_read() -> None:
    rows = dict(tables.counter_rows(run_of((3, {"acked_bytes": 1000, "retransmits": 0}))))
    assert (rows["retransmitted"], rows["trimmed on the way"], rows["switch drops"]) == ("0", "not read", "not read")


def test_switches_that_wrote_no_samples_prove_nothing_about_trimming(made_up: Callable[..., Run]) -> None:
    run = made_up(trims=9, changed={"world": "simulated"})
    blind = [Run([line for line in run.lines if line.get("device") is None]) for _ in range(2)]
    found = comparison.trimming_matters(("with", blind[0]), ("without", blind[1]))
    assert (found.holds, found.reason) == (None, "with: no switch wrote samples")


def test_a_switch_that_runs_no_program_has_no_trims_and_none_becomes_a_count() -> None:
    row: dict[str, Any] = {"IFACE": "p0l0-eth1", "TRIM_PKTS": None, "DROPS": {}}
    assert port_rows.added({"ports": [row]}, {"ports": [{**row, "TRIM_PKTS": 4}]})["ports"][0]["TRIM_PKTS"] == 4


def test_a_run_ends_with_a_sample_however_short_it_is(tmp_path) -> None:
    """A rank that computes for a third of the time between two samples, and then sends 100,000 bytes: 25 packets."""
    goal = tmp_path / "two.goal"
    goal.write_text(
        "num_ranks 2\nrank 0 {\na: calc 3000\nb: send 100000b to 1 tag 1\nb requires a\n}\n"
        "rank 1 {\na: recv 100000b from 0 tag 1\n}\n"
    )
    cli.main(["run", str(goal), "--plan", "tiny", "--world", "simulated", "--seed", "1", "--runs", str(tmp_path)])
    run = Run.open(find(tmp_path, "latest"))
    assert counters.qp_totals(run)["data_packets"] == 25
    took_s = run.phases["run"].length_ns / 1e9
    assert goodput.of_phase(run, run.phases["run"]) == pytest.approx(800_000 / took_s, rel=0.02)
    last = {host: int(samples[-1]["t_ns"]) for host, samples in run.agent_samples.items()}
    assert set(last.values()) == {run.end_ns}
