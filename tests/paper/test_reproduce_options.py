"""Names and options that `./lab reproduce` refuses before any run."""

from pathlib import Path

import pytest

from cli import main as cli
from paper import catalogue


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("14 --intervals", "--intervals: only with figures that have them, 16 or 17 (got 14)"),
        ("9a 16-large --intervals", "--intervals: only with figures that have them, 16 or 17 (got 9a 16-large)"),
        ("9a --markdown nowhere/page.md", "--markdown must be a file in a folder that exists and can be"),
        ("9a --markdown page.md/page.md", "--markdown must be a file in a folder that exists"),
        ("9a --markdown link", "--markdown must be a file in a folder that exists"),
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


@pytest.mark.parametrize("name", ["99", "9z", "7", "shape", "incast"])
def test_a_wrong_name_gets_all_choices(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["reproduce", "9a", name, "--runs", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr().err
    choices = ", ".join([*catalogue.MODULES, *catalogue.ON_DEMAND])
    assert f"FIGURE must be one of {choices} (got {name!r})" in said
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
