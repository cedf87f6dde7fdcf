"""The page of the reproduction: tables, causes, and the runs that are kept for it."""

import ast
import csv
import gzip
import json
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from cli import main as cli
from judging.run import Run
from paper import catalogue, kept_runs, perform, readings
from paper.figure import Experiment, Figure, Order, Quantity
from paper.outcome import BEYOND, WITHIN_NEAR, WITHIN_READING, Outcome, number
from paper.perform import FigureTask, parts_of, task
from paper.random_loss import PROFILE
from paper.readings import Reading
from paper.report import causes, standing, table
from running.runner import make_run
from studies.sweeping.row import Row, broken
from studies.sweeping.sweep import RowStore
from tests.helpers.quick_sweep import inline


def outcome(quantities: tuple[Quantity, ...], numbers: dict[str, float], **more: Any) -> Outcome:
    """A figure whose every part is one number, `rate`."""
    more = {"experiments": (), **more}
    figure = replace(catalogue.find("4"), name="99", quantities=quantities, charts=(), **more)
    rows = {part: Row("k", 1, "made", metrics={"rate": rate}) for part, rate in numbers.items()}
    return Outcome(figure, rows, list(rows))


def own(name: str, paper: float, part: str, **more: Any) -> Quantity:
    return Quantity(name, paper, "Gb/s", f"{part}:rate", "", **more)


def test_an_experiment_is_compared_with_the_run_of_its_own_seed_and_not_with_the_median() -> None:
    seeds = tuple(f"roce{ending}:rate" for ending in ("", "-seed-2", "-seed-3"))
    numbers = {"roce": 10.0, "roce-seed-2": 30.0, "roce-seed-3": 40.0, "roce-changed": 11.0}
    made = outcome(
        (own("rate", 100.0, "roce", seeds=seeds),),
        numbers,
        experiments=(Experiment("knob", "rate", "roce-changed:rate"),),
    )
    assert made.comparisons[0].ours == 30.0
    assert table.experiments(made) == [["knob", "rate", "Gb/s", "100", "10", "11"]]
    assert causes.experiments([made]) == {("99", "rate"): ("10", "11")}


def test_orders_that_agree_say_how_many_are_ties_on_one_side_or_half_calibrated() -> None:
    quantities = (own("a", 101.0, "one"), own("b", 100.0, "two"), own("c", 50.0, "three", calibrates=True))
    found = outcome(
        quantities,
        {"one": 150.0, "two": 100.0, "three": 60.0},
        orders=(Order("a", "b"), Order("a", "c"), Order("c", "b")),
    )
    assert [(one.agrees, one.tie_in_one, one.half_calibrated) for one in found.orders] == [
        (True, True, False),
        (True, False, True),
        (True, False, True),
    ]
    assert table.order_notes([found]) == (
        "Of the 3 that agree, 1 are a tie in one of the two only, the paper or here, and 2 have a number from which the"
        " model was set."
    )


def test_a_calibrating_row_that_is_missed_says_why_also_in_the_figures() -> None:
    met, missed = own("met", 10.0, "one", calibrates=True), own("missed", 22.0, "two", calibrates=True, why="a reason")
    rows = table.calibrating([outcome((met, missed), {"one": 10.1, "two": 1.6})])
    assert [row[-1] for row in rows] == ["", "a reason"]
    # Only figure 22 has one: a port's pause was set from a queue that the model does not reach.
    figures: list[Figure] = list(catalogue.figures())
    told = [(figure.name, one.name) for figure in figures for one in figure.quantities if one.calibrates and one.why]
    assert ("22", "default, queue with more than 11 flows") in told


@pytest.mark.parametrize("value", [0.25649965, 761.14996, 1518.4999996, 10.9949991])
def test_a_number_has_the_same_digits_on_the_page_as_from_the_json(value: float) -> None:
    """Rounded once to six digits and then to four: as a reader of the JSON would."""
    told = standing.shortened(value)
    assert number(value) == number(told)


def test_there_is_a_column_of_times_unless_no_time_is_known() -> None:
    quantity = (own("rate", 100.0, "one"),)
    unknown = outcome(quantity, {"one": 100.0})
    timed = Outcome(unknown.figure, {"one": replace(unknown.rows["one"], seconds=2.5)}, ["one"])
    head, rows = table.summary([unknown])
    assert {len(row) for row in rows} == {len(head)} == {len(table.SUMMARY_HEAD) - 1}
    assert [row[-1] for row in table.summary([timed, unknown])[1]] == ["2", "–", "–"]
    head, rows = table.summary([timed])
    assert (head[-1], [row[-1] for row in rows]) == ("seconds", ["2", "2"])


def test_only_the_code_that_measures_a_figure_makes_it_again() -> None:
    def names(figure: str) -> list[str]:
        return [Path(name).stem for name in perform.measuring(catalogue.file_of(figure))]

    assert names("16") == ["random_loss"]
    assert names("18") == ["clock", "incast", "measuring", "streams"]


def test_a_module_that_no_key_covers_reads_no_run() -> None:
    for name in perform.DATA - {"figure"}:
        tree = ast.parse((catalogue.FOLDER / f"{name}.py").read_text())
        modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not [module for module in modules if module.partition(".")[0] == "judging"], name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["4", "5.2.1", "9a", "14", "15", "16", "18", "20"])
def test_no_module_of_data_takes_part_in_measuring(name: str, tmp_path: Path) -> None:
    """One figure of each way of measuring. The functions that Python calls are written down meanwhile."""
    figure = catalogue.find(name)
    part = min(figure.parts(True), key=lambda part: part.plan.host_count * sum(phase.seconds for phase in part.phases))
    run = Run.open(make_run(perform.spec(name, part, True), tmp_path))
    called: set[str] = set()

    def look(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(catalogue.FOLDER) and not frame.f_code.co_name.startswith("<"):
            called.add(str(path.relative_to(catalogue.FOLDER.parent)))

    sys.setprofile(look)
    try:
        part.measure(run)
    finally:
        sys.setprofile(None)
    assert called, "nothing of this room was called"
    file = catalogue.file_of(name)
    assert called <= {*perform.measuring(file), str(file.relative_to(catalogue.FOLDER.parent))}


FILE = Path(__file__).with_name("second_reading.toml")
ROUNDING = 1e-9
"""What binary fractions may be off: two readings may differ by exactly the sum of their errors."""


@dataclass(frozen=True, slots=True)
class Second:
    """A number read again, and what that reading may be off, both in the unit of the first reading."""

    value: float
    error: float


def second() -> dict[str, dict[str, Second]]:
    """The second readings by figure and name; TypeError for a key that none has."""
    document = tomllib.loads(FILE.read_text())
    return {figure: {name: Second(**entry) for name, entry in entries.items()} for figure, entries in document.items()}


def disagreements(first: Mapping[str, Reading], again: Mapping[str, Second]) -> list[str]:
    """The numbers of a figure whose two readings are further apart than their errors together."""
    return [
        f"{name}: {first[name].value} ± {first[name].error}, again {two.value} ± {two.error}"
        for name, two in again.items()
        if abs(first[name].value - two.value) > first[name].error + two.error + ROUNDING
    ]


def test_a_second_reading_of_a_third_of_the_papers_numbers_agrees() -> None:
    """Truth: the paper itself, read twice by different means. The draw is described in the file."""
    found = second()
    assert sum(map(len, found.values())) == 128
    assert {figure: disagreements(readings.of(figure), again) for figure, again in found.items()} == {
        figure: [] for figure in found
    }


DOCS = Path(__file__).resolve().parents[2] / "docs"


@cache
def recorded() -> list[Outcome]:
    return kept_runs.outcomes(kept_runs.read(kept_runs.RECORDED), catalogue.figures())


def kept() -> list[dict[str, Any]]:
    return standing.all_rows(recorded())


def changed() -> causes.Changed:
    return causes.experiments(recorded())


def row(figure: str, quantity: str, difference: float, verdict: str = BEYOND, counts: bool = True) -> dict[str, Any]:
    return {"figure": figure, "quantity": quantity, "difference": difference, "verdict": verdict, "counts": counts}


def test_every_miss_has_one_cause_with_a_reason_and_every_cause_has_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [one["cause"] for one in kept()]
    named = [name for name in found if name]
    assert len(named) == sum(one["counts"] and one["verdict"] == BEYOND for one in kept())
    assert set(named) == {cause.name for cause in causes.CAUSES}
    reasons = {(figure.name, one.name): one.why for figure in catalogue.figures() for one in figure.quantities}
    assert [one["quantity"] for one in kept() if one["cause"] and not reasons[one["figure"], one["quantity"]]] == []
    monkeypatch.setattr(causes, "CAUSES", (*causes.CAUSES, causes.Cause("again", (), {"21": "PFC"})))
    with pytest.raises(ValueError, match="a miss has one cause"):
        causes.cause_of("21", "PFC alone, 8 QPs, victim")


def test_every_sentence_of_a_cause_finds_its_numbers_among_the_runs_and_types_none_but_losses() -> None:
    for cause in causes.CAUSES:
        for one in cause.sentences:
            assert causes.sentence(one, kept(), changed()), one
    texts = [one for cause in causes.CAUSES for one in cause.sentences]
    assert {found for text in texts for found in re.findall(r"\d+\.\d+", causes.CELL.sub("", text))} == {"0.1"}


def test_the_page_in_docs_counts_the_misses_by_cause() -> None:
    counts = [(row[0].partition(":")[0], int(row[1])) for row in causes.table(kept())]
    told = re.findall(r"^\| (.+?)(?::.*)? \| (\d+) \|$", (DOCS / "reproduction.md").read_text(), re.MULTILINE)
    assert [(name, int(count)) for name, count in told[:-1]] == counts[: len(told) - 1]
    assert int(told[-1][1]) == sum(count for _, count in counts[len(told) - 1 :])


def test_a_sentence_has_the_numbers_of_its_rows_and_is_left_out_without_them() -> None:
    text = "{7: rate: changed} for {7: rate: same}, {7: rate: here} ({7: rate: interval}),\nnot {7: rate: paper}"
    one = {"figure": "7", "quantity": "rate", "paper": 1234.5, "ours": 0.94513, "interval": [0.9, 2.0]}
    experiment = {("7", "rate"): ("0.94", "63.83")}
    assert causes.sentence(text, [one], experiment) == "63.83 for 0.94, 0.9451 (0.9 to 2), not 1,234"
    assert causes.sentence(text, [one], {}) is None
    assert causes.sentence(text, [{**one, "interval": None}], experiment) is None
    assert causes.sentence(text, [{**one, "ours": None}], experiment) is None
    assert causes.sentence(text, [{**one, "figure": "8"}], experiment) is None


@pytest.mark.parametrize(("loss", "least", "most"), [("0.1", 0.24, 0.29), ("1", 0.16, 0.22)])
def test_the_repair_time_that_the_paper_asks_for_follows_from_the_rows(loss: str, least: float, most: float) -> None:
    """Losses lengthen a ring: the paper's added time over ours, times the repair time of the profile."""
    rates = {one["quantity"]: (one["paper"], one["ours"]) for one in kept() if one["figure"] == "16"}
    asked = []
    for size in (2, 4, 8, 16, 32):
        lossy, clean = rates[f"MRC, {loss} % loss, {size} MB"], rates[f"MRC, 0 % loss, {size} MB"]
        paper, ours = (1 / with_loss - 1 / without for with_loss, without in zip(lossy, clean, strict=True))
        asked.append(PROFILE.mrc["loss_patience_ns"] / 1e6 * paper / ours)
    assert (round(min(asked), 2), round(max(asked), 2)) == (least, most)
    assert causes.BESIDE[{"0.1": "asked_ms_tenth", "1": "asked_ms_one"}[loss]] == f"{least} to {most}"


def test_two_queue_pairs_per_peer_are_nearer_to_the_paper_as_the_reason_says() -> None:
    off = {one["quantity"]: abs(one["difference"]) for one in kept() if one["figure"] == "17" and one["counts"]}
    assert all(off[f"RoCE 16 QP, 0 % loss, {size} MB"] < off[f"RoCE 1 QP, 0 % loss, {size} MB"] for size in (32, 64))


def test_causes_are_counted_by_direction_the_most_frequent_first() -> None:
    made = [
        row("17", "MRC, 1 % loss, 2 MB", 0.18),
        row("16", "RoCE 1 QP, 0.1 % loss, 2 MB", -0.2),
        row("17", "RoCE 16 QP, 0.1 % loss, 4 MB", 1.7),
        row("17", "RoCE 16 QP, 1 % loss, 8 MB", 0.01, WITHIN_NEAR),
        row("17", "RoCE 16 QP, 1 % loss, 16 MB", 0.2, WITHIN_READING),
        row("18", "MRC, fastest incast flow", 0.2, counts=False),
        row("99", "anything", 0.2),
    ]
    table = causes.table(made)
    assert [line[1:5] for line in table] == [["2", "16, 17", "1", "1"], ["1", "17", "0", "1"], ["1", "99", "0", "1"]]
    assert table[2][0] == causes.UNKNOWN
    assert causes.bar(made) == ("1 of 6 judged rows are near, within 15 %. The bar is 5 (75%), so 4 rows are missing.")
    assert causes.bar(made[:1]).endswith(", so 1 row is missing.")
    assert causes.bar(made[3:4]).endswith("; the bar is 1 (75%).")
    assert causes.table(made[3:6]) == []


def test_the_numbers_that_causes_have_of_dcqcns_constants_are_in_their_file() -> None:
    rows = list(csv.reader((DOCS / "reproduction" / "dcqcn.csv").open()))[1:]
    without = {name: float(peers) for name, _, _, peers, _ in rows}
    settings = [value for name, value in without.items() if not re.search("hash|MRC|paper", name)]
    assert f"{min(settings):.1f}" == causes.BESIDE["dcqcn_least_gbps"]
    assert f"{max(settings):.1f}" == causes.BESIDE["dcqcn_most_gbps"]
    assert str(without["no DCQCN, priority flow control alone"]) == causes.BESIDE["without_dcqcn_gbps"]


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
def test_the_short_form_says_that_no_number_counts_and_how_many_runs_were_made(names, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("studies.farm.pool.Pool", lambda *_: inline(made))
    monkeypatch.setattr(catalogue, "MODULES", {"14": catalogue.MODULES["14"]})
    assert cli.main(["reproduce", *names, "--short", "--plain", "--runs", str(tmp_path)]) == 0
    told = " ".join(line for line in capsys.readouterr().out.splitlines() if not line.startswith("["))
    assert " ".join(told.split()).startswith("This is the short form (--short): its runs last seconds and only show")
    assert "6 of 6" in told
    assert not list(tmp_path.rglob("reproduction.*"))


def test_the_short_form_of_a_figure_says_how_many_runs_were_broken_off() -> None:
    figure, broken = catalogue.find("14"), Row("k", 1, "made", error="disk full")
    outcomes = [Outcome(figure, {}, ["a", "b"]), Outcome(figure, {"a": broken}, ["a", "b"])]
    assert [row[2] for row in table.runs(outcomes)] == ["0 of 2", "1 of 2, broken off"]
