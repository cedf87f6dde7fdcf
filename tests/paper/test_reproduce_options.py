"""Names and options that `./lab reproduce` refuses before any run, and the exit status of an ablation."""

from dataclasses import replace
from pathlib import Path

import pytest

from cli import main as cli
from endpoint.mrc.presets import RULES
from paper import catalogue
from studies.sweeping.row import Row, broken
from studies.sweeping.task import Task
from tests.helpers.quick_sweep import inline


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("9a --seeds 3", "--seeds: only with --ablate"),
        ("9a --time 0.1", "--time: only with --ablate"),
        ("--ablate --intervals", "--intervals: only with figures"),
        ("14 --intervals", "--intervals: only with figures that have them, 16 or 17 (got 14)"),
        ("9a 16-large --intervals", "--intervals: only with figures that have them, 16 or 17 (got 9a 16-large)"),
        ("9a --markdown nowhere/page.md", "--markdown must be a file in a folder that exists and can be"),
        ("9a --markdown page.md/page.md", "--markdown must be a file in a folder that exists"),
        ("--ablate --markdown .", "--markdown must be a file in a folder that exists"),
        ("--ablate --markdown link", "--markdown must be a file in a folder that exists"),
        ("9a --markdown taken.md", "(got taken.md): taken.json is not a file"),
        ("9a --markdown /proc/page.md", "--markdown must be a file in a folder that exists and can be written"),
        (f"9a --markdown {'long' * 64}.md", "--markdown must be a file in a folder that exists and can be written"),
        ("9a --markdown shown", "shown is not a file"),
        ("9a --markdown .", "(got .): . is not a file"),
        ("9a --markdown page.json", "--markdown must not end in .json: that file is written beside it (got page.json)"),
    ],
)
def test_options_that_cannot_be_are_refused_before_anything_is_run(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("page.md").write_text("kept")
    Path("link").symlink_to(tmp_path)
    Path("taken.json").mkdir()
    Path("shown").symlink_to("page.md")  # as /dev/stdout may be: a link is not replaced
    before = sorted(tmp_path.iterdir())
    assert cli.main(["reproduce", *words.split(), "--short", "--runs", "runs"]) == 2
    assert said in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before
    assert Path("page.md").read_text() == "kept"


@pytest.mark.parametrize("page", ["page.md", "new.md", "taken.md"])
def test_a_page_that_can_be_written_is_neither_refused_nor_touched(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An ablation writes no .json beside its page, so a folder of that name is not in the way."""
    monkeypatch.chdir(tmp_path)
    Path("page.md").write_text("kept")
    Path("taken.json").mkdir()
    before = sorted(tmp_path.iterdir())
    assert cli.main(["reproduce", "--ablate", "--seeds", "none", "--markdown", page, "--runs", "runs"]) == 2
    assert "--seeds must be a number" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before
    assert Path("page.md").read_text() == "kept"


@pytest.mark.parametrize("name", ["99", "9z", "7", "shape", "incast"])
def test_a_wrong_name_gets_all_choices(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["reproduce", "9a", name, "--runs", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr().err
    choices = ", ".join([*catalogue.MODULES, *catalogue.ON_DEMAND])
    assert f"FIGURE must be one of {choices}; with --ablate, names of scenarios (got {name!r})" in said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("1", "Figure 1 draws two topologies and measures nothing"),
        ("2", "Figure 2 draws how switches forward SRv6 packets, and measures nothing"),
        ("3", "Figure 3 draws how an SRv6 address is made from an EV, and measures nothing"),
        ("7", "`./lab reproduce 6` runs this event"),
        ("13", "Figure 13 is part of figure 12: `./lab reproduce 12` compares"),
    ],
)
def test_a_figure_of_the_paper_that_is_missing_gets_the_reason(
    name: str, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["reproduce", name, "--runs", str(tmp_path)]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_each_of_the_papers_22_figures_is_run_or_its_absence_has_a_reason() -> None:
    run = {name.rstrip("abcd") for name in catalogue.MODULES}
    numbers = {str(number) for number in range(1, 23)}
    assert numbers - run == set(catalogue.MISSING)


def test_an_ablation_with_runs_that_were_broken_off_names_them_and_ends_with_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(task: Task) -> Row:
        return broken(task.key, task.seed, OSError("the disk is full"))

    monkeypatch.setattr("studies.farm.pool.Pool", lambda *_: inline(full))
    words = ["reproduce", "--ablate", "smoke", "--seeds", "2", "--short", "--plain", "--runs", str(tmp_path)]
    assert cli.main(words) == 1
    said = capsys.readouterr().out
    assert "broken off: ./lab run smoke --transport mrc-strict " in said
    assert "--seed 2: OSError: the disk is full" in said
    page = first_lines(tmp_path / "reproduction" / "ablation.md")
    runs = 2 * (len(RULES) + 2)
    assert f"This page is partial: it has 0 of the {runs} runs of `./lab reproduce --ablate smoke --seeds 2" in page
    assert f"{runs} more were broken off." in page


def test_the_page_of_an_interrupted_ablation_says_how_many_runs_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Row] = []

    def interrupted(task: Task) -> Row:
        if len(made) == 3:
            raise KeyboardInterrupt
        made.append(Row(task.key, task.seed, "true", metrics={"goodput_kept": 0.9}))
        return made[-1]

    page = tmp_path / "page.md"
    words = ["reproduce", "--ablate", "smoke", "--seeds", "2", "--short", "--plain", "--runs", str(tmp_path)]
    monkeypatch.setattr("studies.farm.pool.Pool", lambda *_: inline(interrupted))
    assert cli.main([*words, "--markdown", str(page)]) == 130
    runs, command = 2 * (len(RULES) + 2), "`./lab reproduce --ablate smoke --seeds 2 --short`"
    assert f"This page is partial: it has 3 of the {runs} runs of {command}." in first_lines(page)
    assert "made this page" not in first_lines(page)
    monkeypatch.setattr(
        "studies.farm.pool.Pool", lambda *_: inline(lambda task: replace(made[0], key=task.key, seed=task.seed))
    )
    assert cli.main([*words, "--markdown", str(page)]) == 0
    assert f"{command} made this page." in first_lines(page)
    assert "partial" not in first_lines(page)


def first_lines(page: Path) -> str:
    return " ".join(" ".join(page.read_text().splitlines()[:10]).split())
