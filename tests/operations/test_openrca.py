"""Incidents as cases of OpenRCA, read as its own evaluation reads them (microsoft/OpenRCA, main/evaluate.py, 2025)."""

import csv
import re

import pytest

from cli.main import main
from operations.incident.draw import draw
from operations.incident.openrca import BEGIN, instruction, scoring_points

COMPONENT = r"The (?:\d+-th|only) predicted root cause component is ([^\n]+)"
REASON = r"The (?:\d+-th|only) predicted root cause reason is ([^\n]+)"


@pytest.mark.parametrize("level", range(1, 6))
def test_the_scoring_points_are_the_truth_in_the_words_of_the_evaluation(level: int) -> None:
    for seed in range(40):
        incident = draw(seed, level)
        points = scoring_points(incident)
        assert re.findall(COMPONENT, points) == [one.component for one in incident.hidden]
        assert re.findall(REASON, points) == [one.kind for one in incident.hidden]


def test_the_question_offers_every_reason_and_does_not_name_the_answer(tmp_path) -> None:
    incident = draw(4, 3)
    (hidden,) = incident.hidden
    question = instruction(incident, BEGIN)
    assert hidden.kind in question
    assert hidden.component not in question.replace("p0l0-p0s1", "").replace("p0l0>p0s1", "")
    assert incident.tickets[0] in question


def test_an_export_has_a_case_per_incident_and_the_answers_of_tools(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("operations.incident.openrca.ROUNDS", 6)
    cases = tmp_path / "cases"
    assert main(["incident", "export", str(cases), "--seeds", "1"]) == 0
    assert capsys.readouterr().out == f"wrote {cases}, 1 cases\n"
    (hidden,) = draw(1, 1).hidden
    (query,) = csv.DictReader((cases / "query.csv").open())
    (record,) = csv.DictReader((cases / "record.csv").open())
    assert query["task_index"] == "task_6"
    assert (record["component"], record["reason"]) == (hidden.component, hidden.kind)
    metrics = list(csv.DictReader((cases / "telemetry/2026_01_01/metric/metric_container.csv").open()))
    logs = list(csv.DictReader((cases / "telemetry/2026_01_01/log/log_service.csv").open()))
    assert {row["log_name"] for row in logs} >= {"event", "path", "table"}
    sent = [int(row["value"]) for row in metrics if (row["cmdb_id"], row["kpi_name"]) == ("p0l0>p0s0", "TX_OK")]
    assert len(sent) == 6
    assert max(sent) > 100
    assert min(sent) >= 0
    everything = (cases / "telemetry/2026_01_01/log/log_service.csv").read_text() + str(metrics)
    assert hidden.kind not in everything
    assert main(["incident", "export", str(cases), "--seeds", "0"]) == 2
    assert "--seeds must be between 1 and 200 (got 0)" in capsys.readouterr().err
