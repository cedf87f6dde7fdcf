"""The ablation over a hunt's cases: tallies and their page; the command itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli import main as cli
from endpoint.mrc.presets import LAB, RULES, STRICT
from paper.variations import hunted
from studies.hunting.attempt import AttemptOutcome
from studies.hunting.draw import draw

SEEDS = range(1, 9)


def tally(title: str, *failed: int) -> hunted.Tally:
    outcomes = [AttemptOutcome({"flows move": "h0 stood still"} if seed in failed else {}, seed == 8) for seed in SEEDS]
    return hunted.tallied(title, SEEDS, iter([(draw(1), outcome) for outcome in outcomes]), lambda line: None)


def test_each_variant_takes_one_rule_off() -> None:
    (_, lab), *without, (_, strict) = hunted.variants()
    assert (lab, strict) == (LAB, STRICT)
    assert [{name for name in LAB if given[name] != LAB[name]} for _, given in without] == [
        {rule.setting} for rule in RULES
    ]


def test_a_case_is_the_same_with_and_without_a_rule() -> None:
    for seed in range(40):
        whole, bare = draw(seed, LAB), draw(seed, STRICT)
        assert (whole.fabric, whole.workloads, whole.faults, whole.plan_keys, whole.settings) == (
            bare.fabric, bare.workloads, bare.faults, bare.plan_keys, bare.settings
        )  # fmt: skip


def test_the_page_counts_broken_cases_and_compares_them_in_pairs() -> None:
    found = [tally("all rules", 3), tally("without `a`", 3), tally("without `b`", 3, 4, 5), tally("none of them")]
    shown = hunted.markdown(found, "./lab reproduce --ablate hunt --seeds 8")
    assert "`./lab reproduce --ablate hunt --seeds 8` made this page." in shown
    assert "| all rules | 12.5 % (2.2 to 47.1); 1 showed nothing | – | flows move: 1 |" in shown
    assert "| without `a` | 12.5 % (2.2 to 47.1); 1 showed nothing | the same cases | flows move: 1 |" in shown
    # By hand: two of eight pairs differ by 1, so the mean is 0.25, the deviation 0.4629, and t is 2.3646.
    assert "| without `b` | 37.5 % (13.6 to 69.5); 1 showed nothing | +25.0 points (−13.7 to +63.7) |" in shown
    assert "| none of them | 0 % (at most 31.3); 1 showed nothing | −12.5 points (−42.1 to +17.1) | – |" in shown


def test_a_broken_case_is_told_with_its_seed() -> None:
    told: list[str] = []
    outcome = AttemptOutcome({"messages": "1 of 9 did not complete", "flows move": "h0 stood still"})
    found = hunted.tallied("all rules", [7], iter([(draw(7), outcome)]), told.append)
    assert told == ["all rules, seed 7: messages: 1 of 9 did not complete"]
    assert found.broken == {7: ["messages", "flows move"]}


@pytest.mark.parametrize("words", [["hunt", "incast"], ["hunt", "--short"], ["hunt", "--time", "0.5"]])
def test_the_hunts_cases_are_made_alone_and_whole(
    words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["reproduce", "--ablate", *words, "--runs", str(tmp_path)]) == 2
    assert "--ablate hunt is made alone, without --short and --time" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_makes_the_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["reproduce", "--ablate", "hunt", "--seeds", "2", "--workers", "1", "--runs", str(tmp_path)]
    assert cli.main([*words, "--markdown", str(tmp_path / "mine.md")]) == 0
    page = tmp_path / "reproduction" / "ablation-hunt.md"
    assert f"page: {page}" in capsys.readouterr().out
    assert page.read_text() == (tmp_path / "mine.md").read_text()
    assert page.read_text().count("\n| without `") == len(RULES)
