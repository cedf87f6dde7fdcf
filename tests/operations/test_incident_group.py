"""A group's score: the sum of what each person's answers earned."""

import json
from pathlib import Path

import pytest

from cli.main import main


def answered(folder: Path, number: int, points: float, net: float) -> None:
    run = folder / "incident" / f"2026010{number}-000000-{number}"
    run.mkdir(parents=True)
    (run / "options.json").write_text("{}")
    (run / "answer.json").write_text(json.dumps({"points": points, "net": net, "commands": 4, "lab_s": 10.0 * number}))


def test_the_score_of_a_group_is_the_sum_of_its_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answered(tmp_path / "anna", 1, 1.0, 1.0)
    answered(tmp_path / "anna", 2, 0.5, -0.5)
    answered(tmp_path / "ben", 1, 0.0, 0.0)
    assert main(["incident", "scores", str(tmp_path / "anna"), str(tmp_path / "ben")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "anna: 1.5 of 2 points, net score +0.5, 8 commands, 30 s of lab time",
        "ben: 0 of 1 points, net score +0, 4 commands, 10 s of lab time",
        "together: 1.5 of 3 points, net score +0.5, 12 commands, 40 s of lab time",
    ]


def test_a_person_without_an_answer_is_named(tmp_path: Path, refused) -> None:
    (tmp_path / "carl").mkdir()
    assert "carl must hold an incident that was answered" in refused("incident", "scores", str(tmp_path / "carl"))
