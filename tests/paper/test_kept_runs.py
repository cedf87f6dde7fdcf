"""`./lab reproduce`: options that are refused, short forms that say so first, and the file that keeps a page's runs."""

import gzip
import json
import os
from pathlib import Path

import pytest

from cli import main as cli
from paper import catalogue, kept_runs
from paper.outcome import JUDGED, NOT_RUN, POWERLESS, Outcome
from paper.perform import FigureTask, parts_of, task
from paper.report import page, standing, table
from studies.sweeping.row import Row, broken
from studies.sweeping.sweep import RowStore
from tests.helpers.page_text import text_of
from tests.helpers.quick_sweep import inline

FIGURE = "9a"
NUMBERS = [*(f"down {links}" for links in range(8)), "symmetric", "first dip", "dip"]
LINE = {"figure": FIGURE, "part": "mrc", "key": "0" * 16, "seed": 3, "verdict": "made", "metrics": {"gbps": 1.5}}


def packed(*lines: object) -> bytes:
    return gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode())


def test_what_is_written_is_read_again_and_does_not_say_how_long_it_took(tmp_path: Path) -> None:
    curve = {"total": [[0.0, 1.5], [1.0, 2.5]]}
    rows = {
        ("9a", "mrc"): Row("a" * 16, 0, "made", metrics={"gbps": 1.5, "zero": 0.0}, curves=curve),
        ("16", "roce"): Row("b" * 16, 7, "made", metrics={"busbw": 43.115400786162441}),
    }
    kept_runs.write(tmp_path / "a", rows)
    assert kept_runs.read(tmp_path / "a") == rows
    slow = {place: Row(row.key, row.seed, row.verdict, metrics=row.metrics, seconds=9.5) for place, row in rows.items()}
    kept_runs.write(tmp_path / "b", {at: slow[at] for at in reversed(rows)} | {("9a", "mrc"): rows["9a", "mrc"]})
    assert (tmp_path / "b").read_bytes() == (tmp_path / "a").read_bytes()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"no gzip", "BadGzipFile"),
        (packed(LINE)[:-9], "EOFError"),
        (gzip.compress(b"\xff\n"), "UnicodeDecodeError"),
        (gzip.compress(b"[\n"), "JSONDecodeError"),
        (gzip.compress(b"[" * 100_000), "RecursionError"),
        (packed(["figure"]), "TypeError"),
        (packed({"part": "mrc"}), "KeyError: 'figure'"),
        (packed({**LINE, "verdict": "great"}), "'great'"),
        (packed({**LINE, "key": 5}), "key must be text"),
        (packed({**LINE, "seed": "3"}), "seed a whole number"),
        (packed({**LINE, "metrics": {"gbps": "fast"}}), "must be of numbers (got 'fast')"),
        (packed({**LINE, "metrics": [1]}), "metrics and curves must be objects"),
        (packed({**LINE, "curves": {"total": [["x"]]}}), "must be of numbers (got 'x')"),
    ],
    ids=range(13),
)
def test_what_is_no_file_of_runs_is_refused_before_any_run_and_stays(content: bytes, said, tmp_path, refused) -> None:
    file = tmp_path / "runs.gz"
    file.write_bytes(content)
    error = refused("reproduce", FIGURE, "--keep", str(file), "--runs", str(tmp_path / "runs"))
    assert f"{file} must be a file of runs" in error
    assert said in error
    assert file.read_bytes() == content


@pytest.mark.parametrize("lacking", ["mrc:down 3", "mrc:rate"])
def test_a_run_of_this_code_without_a_number_of_its_figure_is_refused(lacking: str, tmp_path, capsys) -> None:
    figure = catalogue.find(FIGURE)
    key = task(figure, parts_of(FIGURE, False)["mrc"], short=False).key
    numbers = {name: 1.0 for name in NUMBERS if f"mrc:{name}" != lacking}
    row = Row(key, 0, "made", metrics=numbers, curves={} if lacking == "mrc:rate" else {"rate": [[0.0, 1.0]]})
    file, runs = tmp_path / "runs.gz", tmp_path / "runs"
    kept_runs.write(file, {(FIGURE, "mrc"): row})
    content = file.read_bytes()
    assert cli.main(["reproduce", "4", "--keep", str(file), "--runs", str(runs)]) == 2
    said = f"each run must have its figure's numbers and curves (missing: figure {FIGURE}, {lacking})"
    assert f"{file} must be a file of runs ({said})" in capsys.readouterr().err
    assert file.read_bytes() == content
    with RowStore(runs / "reproduction") as store:
        assert not len(store)


@pytest.mark.parametrize("named", ["10", "99"])
def test_a_run_in_the_name_of_another_figure_counts_for_none(named: str, tmp_path: Path) -> None:
    """Without a number of the figure that its key belongs to, it would break that figure's page."""
    key = task(catalogue.find(FIGURE), parts_of(FIGURE, False)["mrc"], short=False).key
    with RowStore(tmp_path / "runs") as store:
        kept_runs.hand_over(tmp_path / "runs.gz", {(named, "mrc"): Row(key, 0, "made")}, store)
        assert not len(store)


def test_the_page_and_its_json_are_what_the_runs_beside_them_give() -> None:
    """Whatever the code has become since: words and counts are made again, the runs are not."""
    docs = Path(__file__).resolve().parents[2] / "docs"
    rows = kept_runs.read(kept_runs.RECORDED)
    parts = {(figure.name, part.name) for figure in catalogue.figures() for part in figure.parts(False)}
    assert set(rows) == parts
    outcomes = kept_runs.outcomes(rows, catalogue.figures())
    assert (docs / "reproduction" / "figures.json").read_text() == standing.document(outcomes)
    page = " ".join((docs / "reproduction.md").read_text().split())
    assert table.verdict(outcomes) in page
    assert f"makes the {len(rows):,} runs" in page


def test_recorded_runs_are_shown_without_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studies.farm.pool.Pool", lambda *_: pytest.fail("a run was made"))
    assert cli.main(["reproduce", "9a", "22", "--recorded", "--runs", str(tmp_path)]) == 0
    made = tmp_path / "reproduction-recorded"
    assert {row["figure"] for row in json.loads((made / "reproduction.json").read_text())["rows"]} == {"9a", "22"}
    assert "<svg" in (made / "reproduction.html").read_text()


def test_more_than_the_most_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs.gz").write_bytes(gzip.compress(b" " * 1001))
    monkeypatch.setattr(kept_runs, "BYTES_MAX", 1000)
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        kept_runs.read(tmp_path / "runs.gz")


def test_runs_of_the_file_are_not_made_again_and_others_are_kept_in_it(tmp_path, monkeypatch) -> None:
    """Twice the same command: an error breaks off the second run of the first; the second has another folder."""
    parts = list(parts_of(FIGURE, False))
    assert len(parts) > 2
    made: list[str] = []

    def make(task: FigureTask) -> Row:
        made.append(task.part)
        if len(made) == 2:
            return broken(task.key, task.seed, OSError("the disk is full"))
        return Row(task.key, task.seed, "made", metrics=dict.fromkeys(NUMBERS, 1.0), curves={"rate": [[0.0, 1.0]]})

    monkeypatch.setattr("studies.farm.pool.Pool", lambda *_: inline(make))
    monkeypatch.setattr("paper.commands.reproduce.want_compiled", lambda *_: None)
    file = tmp_path / "runs.gz"
    other = {**LINE, "figure": "99", "part": "another"}
    file.write_bytes(packed(other))
    words = ["reproduce", FIGURE, "--plain", "--keep", str(file), "--runs"]
    assert cli.main([*words, str(tmp_path / "one")]) == 1
    assert set(kept_runs.read(file)) == {("99", "another"), *((FIGURE, part) for part in parts if part != made[1])}
    assert cli.main([*words, str(tmp_path / "two")]) == 0
    assert len(made) == len(parts) + 1
    assert made[-1] == made[1]
    assert set(kept_runs.read(file)) == {("99", "another"), *((FIGURE, part) for part in parts)}


CHOICES = ", ".join(catalogue.MODULES)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("14 --intervals --short", "--intervals: only with figures that have them, 16 or 17 (got 14)"),
        ("9a 14 --intervals", "--intervals: only with figures that have them, 16 or 17 (got 9a 14)"),
        ("9a --short --keep runs.gz", "--keep: not with --short"),
        ("9a --ocp --keep runs.gz", "--keep: not with --ocp"),
        ("9a --recorded --keep runs.gz", "--recorded runs nothing: not with --keep"),
        ("9a --recorded --short", "--recorded runs nothing: not with --short"),
        ("9a --keep nowhere/runs.gz", "--keep must be a file in a folder that exists and can be written"),
        ("9a --keep .", "(got .): . is not a file"),
        ("9a --keep shown", "shown is not a file"),
        ("9a --keep /proc/runs.gz", "--keep must be a file in a folder that exists and can be written"),
        (f"9a --keep {'long' * 64}.gz", "--keep must be a file in a folder that exists and can be written"),
        *(
            (f"9a {name}", f"FIGURE must be one of {CHOICES} (got {name!r})")
            for name in ("99", "9z", "7", "shape", "incast")
        ),
        ("1", "Figure 1 draws two topologies and measures nothing"),
        ("2", "Figure 2 draws how switches forward SRv6 packets, and measures nothing"),
        ("3", "Figure 3 draws how an SRv6 address is made from an EV, and measures nothing"),
        ("7", "`./lab reproduce 6` runs this event"),
        ("13", "Figure 13 is part of figure 12: `./lab reproduce 12` compares"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_run(words, said: str, tmp_path, monkeypatch, refused) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shown").symlink_to("runs.gz")  # as /dev/stdout may be: a link is not replaced
    assert said in " ".join(refused("reproduce", *words.split(), "--runs", "runs").split())
    assert os.listdir() == ["shown"]


def test_each_of_the_papers_22_figures_is_run_or_its_absence_has_a_reason() -> None:
    run = {name.rstrip("abcd") for name in catalogue.MODULES}
    assert {str(number) for number in range(1, 23)} - run == set(catalogue.MISSING)


FIRST = "This is the short form (--short): its runs last seconds and only show that everything works."
JUDGEMENTS = (*JUDGED, NOT_RUN, POWERLESS, "judged:", "calibrat", "agrees", "opposite", "order holds", "difference")


def begins(text: str) -> str:
    """The first lines, as one."""
    return " ".join(" ".join(text.splitlines()[:8]).split())


def made(task: FigureTask) -> Row:
    """A row with all numbers and curves that the figure asks for."""
    figure = catalogue.find(task.figure)
    named = [one.measured for one in figure.quantities if one.measured is not None]
    named += [one.measured for one in figure.experiments]
    named += [one.fails.measured for one in figure.quantities if one.fails is not None]
    numbers = {name.partition(":")[2]: 3.0 for name in named}
    curves = {name.partition(":")[2]: [[0, 1], [1, 2]] for chart in figure.charts for name in chart.ours}
    return Row(task.key, task.seed, "made", metrics=numbers, curves=curves)


@pytest.mark.parametrize("names", [["14"], []])
def test_the_short_form_says_that_no_number_counts_and_judges_none(names, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("studies.farm.pool.Pool", lambda *_: inline(made))
    monkeypatch.setattr(catalogue, "MODULES", {"14": catalogue.MODULES["14"]})
    assert cli.main(["reproduce", *names, "--short", "--plain", "--runs", str(tmp_path)]) == 0
    told = "\n".join(line for line in capsys.readouterr().out.splitlines() if not line.startswith("["))
    made_there = tmp_path / "reproduction-short"
    html, content = ((made_there / f"reproduction.{kind}").read_text() for kind in ("html", "json"))
    assert begins(told).startswith(FIRST)
    assert FIRST in html.partition("<h2")[0]
    assert content.lstrip("{\n ").startswith('"short": true')
    for text in (told, content, html.partition("<body>")[2]):
        assert not [judgement for judgement in JUDGEMENTS if judgement in text]
    assert [row["ours"] for row in json.loads(content)["rows"]] == [3.0] * 4
    assert "| flow 1's share on EV-B | of its packets | 1 | 3 |" in text_of(html)
    assert "## Runs" in text_of(html)


def test_the_json_of_a_short_form_has_the_key_short_and_its_figures_say_how_many_runs_were_made() -> None:
    outcome = Outcome(catalogue.find("14"), {}, ["mrc"])
    assert "short" not in json.loads(standing.document([outcome]))
    assert next(iter(json.loads(standing.short_document([outcome])))) == "short"
    figure = catalogue.find("14")
    broken = Row("k", 1, "made", error="disk full")
    outcomes = [Outcome(figure, {}, ["a", "b"]), Outcome(figure, {"a": broken}, ["a", "b"])]
    assert [row[2] for row in table.runs(outcomes)] == ["0 of 2", "1 of 2, broken off"]
    assert "disk full" in page.short_html(outcomes)
