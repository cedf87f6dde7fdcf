"""Contests: what takes part, intervals and ranks, files, and a contest that is broken off and goes on."""

import csv
import errno
import json
import random
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from cli.commands.seeds import contest, sweep
from cli.main import main
from studies.contest import text as told
from studies.contest.algorithm import parse, variants
from studies.contest.result import HEAD, LEADING, Match, Ranking, holm, ranks, results, seeds_needed
from studies.sweeping.paired import difference
from studies.sweeping.row import Row
from studies.sweeping.statement import statement
from studies.sweeping.task import Task
from studies.sweeping.variant import Variant
from tests.helpers.quick_sweep import inline, write_quick

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "docs" / "templates" / "congestion.py"

# --- intervals and ranks


def test_a_paired_interval_is_students() -> None:
    """One pair of five differs, by 1: the mean is 0.2, its standard error 0.2, t with four degrees of freedom 2.776."""
    first, second = dict.fromkeys(range(5), 1.0), {0: 2.0, 1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0, 9: 50.0}
    found = difference(first, second)
    assert found is not None
    assert (found.pairs, found.clear) == (5, False)
    assert found.mean == pytest.approx(0.2)
    assert found.low == pytest.approx(0.2 - 0.5553, abs=1e-4)
    assert found.high == pytest.approx(0.2 + 0.5553, abs=1e-4)
    wide = difference(first, second, 0.99)
    assert wide is not None
    assert wide.high == pytest.approx(0.2 + 0.2 * 4.604, abs=1e-4)


def by_seed(*numbers: float) -> dict[int, float]:
    return dict(enumerate(numbers, 1))


UP_AND_DOWN = by_seed(*(1.0 + (-1) ** seed for seed in range(12)))
MADE: Mapping[str, Mapping[int, float]] = {
    "best": by_seed(*(5.0 for _ in range(12))),
    "up and down": UP_AND_DOWN,
    "in the middle": dict.fromkeys(UP_AND_DOWN, 1.01),
}


def test_only_clear_differences_order_algorithms_and_equal_ones_share_a_place() -> None:
    assert ranks(MADE, "high") == {
        "best": Ranking(1, 1, 1), "in the middle": Ranking(2, 2, 3), "up and down": Ranking(3, 2, 3),
    }  # fmt: skip
    assert ranks(MADE, "low")["best"] == Ranking(3, 3, 3)
    assert (Ranking(1, 1, 1).describe(), Ranking(2, 1, 3).describe()) == ("1 (1)", "2 (1 to 3)")
    assert set(ranks({"a": UP_AND_DOWN, "b": UP_AND_DOWN, "c": UP_AND_DOWN}, "high").values()) == {Ranking(1, 1, 3)}


@pytest.mark.parametrize(("algorithms", "seeds"), [(2, 6), (4, 8), (6, 10)])
def test_ranks_of_equal_algorithms_hold_together_in_nineteen_contests_of_twenty(algorithms: int, seeds: int) -> None:
    """Every rank is possible for each. Of 200 contests at most 10 say otherwise on average; 19 are three sigma more."""
    chance, wrong = random.Random(7), 0
    for _ in range(200):
        drawn = {str(name): by_seed(*(chance.gauss(0, 1) for _ in range(seeds))) for name in range(algorithms)}
        wrong += any((one.low, one.high) != (1, algorithms) for one in ranks(drawn, "high").values())
    assert wrong <= 19


def test_too_few_seeds_order_nothing_and_only_seeds_that_all_algorithms_have_count() -> None:
    """Three algorithms are three pairs with 1.67 % of error each: of 6 coins 3.1 % fall alike, of 7 only 1.6 %."""

    def of(count: int) -> Ranking:
        first = {name: {seed: own[seed] for seed in range(1, count + 1)} for name, own in MADE.items()}
        return ranks(first, "high")["best"]

    assert of(6) == Ranking(1, 1, 3)
    assert of(7) == Ranking(1, 1, 1)
    assert ranks({**MADE, "best": {1: 5.0, 99: 7.0}}, "high")["best"] == Ranking(1, 1, 3)
    assert ranks({**MADE, "best": {99: 7.0}}, "high") == {}
    assert ranks({}, "high") == {}


def test_a_paired_differences_chance_is_students() -> None:
    """Published two-sided values for four degrees of freedom: t = 1 has 0.3739, t = 2.776 has 0.05."""
    found = difference(by_seed(*[0.0] * 5), by_seed(1.0, 0.0, 0.0, 0.0, 0.0))  # t = 0.2 / 0.2
    assert found is not None
    assert found.chance == pytest.approx(0.3739, abs=1e-4)
    # Deviations of 1, -1, 1, -1, 0 have a standard error of 1 / sqrt(5); the mean is 2.776 of these.
    shifted = difference(by_seed(*[0.0] * 5), by_seed(*(2.7764 / 5**0.5 + off for off in (1, -1, 1, -1, 0))))
    assert shifted is not None
    assert shifted.chance == pytest.approx(0.05, abs=1e-4)


def test_chances_are_adjusted_as_holm_did() -> None:
    """Four hypotheses, by hand: 4 x 0.005, 3 x 0.01, 2 x 0.03, then 1 x 0.04, which may not be below the one before."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(("algorithms", "seeds"), [(2, 6), (3, 7), (4, 8), (11, 12)])
def test_the_seeds_that_can_rank_are_known_before_the_run(algorithms: int, seeds: int) -> None:
    """2 to the power of 1 - n is at most 5 % divided by the pairs: 1, 3, 6 and 55 of them."""
    names = [str(number) for number in range(algorithms)]

    def order(count: int) -> set[Ranking]:
        drawn = {name: by_seed(*(int(name) + 0.001 * seed for seed in range(count))) for name in names}
        return set(ranks(drawn, "high").values())

    assert seeds_needed(algorithms) == seeds
    assert {(one.low, one.high) for one in order(seeds - 1)} == {(1, algorithms)}
    assert Ranking(1, 1, 1) in order(seeds)
    assert "can't rank" in told.seeds_enough(algorithms, seeds - 1)
    assert "can rank" in told.seeds_enough(algorithms, seeds)


def match_of(**algorithms: tuple[float, float]) -> Match:
    """Ten seeds of each algorithm, which carries so many bit/s without faults, and such a share of it under faults."""
    statements = []
    for name, (bps, kept) in algorithms.items():
        off = [1 + (seed - 5.5) * 1e-4 for seed in range(1, 11)]
        metrics = [{"goodput": bps * one, "goodput_kept": kept * one, "resent": 0.01 * kept} for one in off]
        rows = [Row(f"{name}{seed}", seed, "true", {}, {}, own) for seed, own in enumerate(metrics, 1)]
        statements.append(statement(Variant("made"), "", rows))
    return Match("made", list(algorithms), next(iter(algorithms)), statements)


def test_an_algorithm_with_a_quarter_of_the_nic_is_not_first_in_what_leads() -> None:
    """In `incast` one path per queue pair carried 9.7 Mb/s, 42.6 under faults, which is 439 % of its reference. MRC
    carried 38.7, and 76.3 under faults, which is 197 %. The former was ranked first."""
    match = match_of(mrc=(38.7e6, 1.971), crippled=(9.7e6, 4.396))
    own = {one.metric.name: one for _, one in results([match]) if one.algorithm == "crippled"}
    for name in LEADING:
        assert own[name].rank == Ranking(2, 2, 2)
        assert own[name].meaning == "worse"
    assert [name for name, one in own.items() if one.rank] == list(LEADING), "shares of other references have no rank"
    assert "74.9%" in told.not_ranked(match)


@pytest.mark.parametrize(
    ("other", "meaning", "rank"),
    [
        ((40e6, 0.900), "alike", Ranking(1, 1, 2)),
        ((40e6, 0.905), "slightly better", Ranking(1, 1, 2)),
        ((40e6, 0.920), "better", Ranking(1, 1, 1)),
        ((40e6, 0.880), "worse", Ranking(2, 2, 2)),
    ],
)
def test_a_difference_below_a_point_is_certain_and_does_not_matter(other, meaning, rank) -> None:
    match = match_of(mrc=(40e6, 0.9), other=other)
    own = {one.metric.name: one for _, one in results([match]) if one.algorithm == "other"}["goodput_kept"]
    assert (own.meaning, own.rank) == (meaning, rank)
    assert told.not_ranked(match) == ""


# --- what takes part


def test_algorithms_are_settings() -> None:
    found = parse(f"mrc,reps+congestion=swift,congestion=dctcp+congestion.gain=0.1,{TEMPLATE}:Mine,loss=reorder")
    assert [one.settings for one in found] == [
        (("selection", "mrc"),),
        (("selection", "reps"), ("congestion", "swift")),
        (("congestion", "dctcp"), ("congestion.gain", "0.1")),
        (("congestion", f"{TEMPLATE}:Mine"),),
        (("loss", "reorder"),),
    ]
    assert [one.name for one in found][1:4:2] == ["reps+congestion=swift", "congestion.py:Mine"]


def test_a_transport_with_other_switches_is_part_of_an_algorithm() -> None:
    found = parse("mrc,transport=mrc-int,congestion=hpcc+transport=mrc-int")
    assert [(one.name, one.transport) for one in found] == [
        ("mrc", "mrc"), ("transport=mrc-int", "mrc-int"), ("congestion=hpcc+transport=mrc-int", "mrc-int"),
    ]  # fmt: skip
    assert found[2].settings == (("congestion", "hpcc"),)
    ((_, plain, own),) = variants(found, ["smoke"], "", {})
    assert (plain.transport, plain.settings, own.settings) == ("mrc-int", (), (("congestion", "hpcc"),))


def test_files_of_one_name_in_two_folders_keep_their_folders_and_one_file_its_short_name(tmp_path: Path) -> None:
    other = tmp_path / TEMPLATE.name
    other.write_text(TEMPLATE.read_text())
    found = parse(f"mrc,{TEMPLATE}:Mine,reps+congestion={other}:Mine,congestion={other}:Mine")
    assert [one.name for one in found] == [
        "mrc",
        f"{TEMPLATE.name}:Mine",
        f"reps+congestion={TEMPLATE.name}:Mine",
        f"congestion={TEMPLATE.name}:Mine",
    ]
    assert [one.name for one in parse(f"{TEMPLATE}:Mine,{other}:Mine")] == [f"{TEMPLATE}:Mine", f"{other}:Mine"]
    words = [f"{TEMPLATE}:Mine+congestion.cut=0.3", f"congestion.cut=0.7+{other}:Mine"]
    assert [one.name for one in parse(",".join(words))] == words, "parameters do not tell files apart"
    again = TEMPLATE.parent / ".." / TEMPLATE.parent.name / TEMPLATE.name
    found = parse(f"{TEMPLATE}:Mine+congestion.cut=0.3,congestion={again}:Mine+congestion.cut=0.7,{again}:Mine")
    assert [one.name for one in found] == [
        "congestion.py:Mine+congestion.cut=0.3",
        "congestion=congestion.py:Mine+congestion.cut=0.7",
        "congestion.py:Mine",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--algorithms", "mrc"], "--algorithms must name at least two algorithms"),
        (["--algorithms", "mrc,,reps"], "must have a name between its commas (number 2 of 'mrc,,reps' is empty)"),
        (["--algorithms", "mrc,swift"], "there is no selection 'swift' (in 'swift'): valid are mrc, oblivious"),
        (["--algorithms", "mrc,congestion=mrc"], "there is no congestion 'mrc'"),
        (["--algorithms", "mrc,reps+mixed"], "'reps+mixed' must choose selection once"),
        (["--algorithms", "mrc,transport=roce"], "the transport in 'transport=roce' must be a form of MRC"),
        (["--algorithms", "mrc,transport=mine"], "no transport 'mine': valid are mrc, "),
        (["--algorithms", "mrc,selection=mrc"], "must name different algorithms (got mrc and selection=mrc)"),
        (["--algorithms", "mrc,nowhere.py:Mine"], "nowhere.py: no such file"),
        (["--algorithms", "mrc,p+q/mine.py:Mine"], "FILE.py:CLASS (a path with + or , cannot be named)"),
        (["--algorithms", f"mrc,{TEMPLATE}:Yours"], "must have a class 'Yours' that derives from one of Selection"),
        (["--algorithms", "mrc,congestion=dctcp+congestion.gain=9"], "congestion.gain must be a number from"),
        (["--reference", "mixed"], "--reference must be one of mrc, reps, oblivious (got 'mixed')"),
        (["--scenario", "smoke,smoke"], "--scenario must name different scenarios"),
        (["--insecure"], "--insecure: only with --cluster"),
    ],
)
def test_words_that_cannot_be_are_refused_before_anything_is_run(words, said, tmp_path, refused) -> None:
    assert said in refused("contest", *words, "--runs", str(tmp_path))
    assert not list(tmp_path.glob("contests/*/*"))


# --- what is written


def made_up(task: Task) -> Row:
    """REPS keeps 0.1 less goodput on every seed, and is false on seed 3."""
    reps = task.run["choices"]["setting_changes"] == {"selection": "reps"}
    metrics = {"goodput_kept": 0.9 - 0.1 * reps - task.seed / 1000, "p99_step": 2.0, "goodput": 1e6}
    verdict = "false" if reps and task.seed == 3 else "true"
    return Row(task.key, task.seed, verdict, {}, {"made up": "so it is"} if verdict == "false" else {}, metrics)


class BrokenOff:
    """Makes so many runs, then Ctrl-C comes."""

    def __init__(self, runs: int) -> None:
        self.left = self.runs = runs

    def __call__(self, task: Task) -> Row:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return made_up(task)


def held(
    folder: Path, seeds: int, monkeypatch: pytest.MonkeyPatch, perform=made_up, *words: str, keep=lambda *_: None
) -> int:
    """A contest whose runs are made up; no run is kept whole."""
    for command in (contest, sweep):
        monkeypatch.setattr(command, "make_engine", lambda *_: inline(perform))
    monkeypatch.setattr(contest, "keep_worst", keep)
    quick = write_quick(folder)
    return main(
        ["contest", "--algorithms", "mrc,reps", "--scenario", str(quick), "--seeds", str(seeds), "--plain",
         "--runs", str(folder / "runs"), *words]
    )  # fmt: skip


def files(folder: Path) -> dict[str, str]:
    (place,) = (folder / "runs" / "contests").iterdir()
    return {path.name: path.read_text() for path in place.iterdir()}


def test_the_files_say_what_the_rows_say(tmp_path, monkeypatch, capsys) -> None:
    assert held(tmp_path, 10, monkeypatch) == 0
    found = files(tmp_path)
    head, *rows = csv.reader(found["contest.csv"].splitlines())
    assert head == HEAD
    kept = {row[4]: row for row in rows if row[1] == "goodput_kept"}
    assert kept["mrc"][5:] == ["10", "0.8945", "mrc", "", "", "", "", "0.01", "", "", "1", "1", "1"]
    gap = ["10", "-0.1", "-0.1", "-0.1", "0.01"]
    assert kept["reps"][5:] == ["10", "0.7945", "mrc", *gap, kept["reps"][13], "worse", "2", "2", "2"]
    assert float(kept["reps"][13]) < 1e-9
    under = {row[4]: row for row in rows if row[1] == "goodput_faults"}
    assert [under[name][6] for name in ("mrc", "reps")] == ["894500", "794500"]
    assert [row[1] for row in rows][:2] == ["goodput_faults"] * 2, "what was carried leads"
    assert [row[-3:] for row in rows if row[1] == "p99_step"] == [["1", "1", "2"]] * 2
    assert {row[4]: row[6] for row in rows if row[1] == "true_share"} == {"mrc": "1", "reps": "0.9"}
    assert {row[-1] for row in rows if row[1] == "true_share"} == {""}, "claims about MRC have no rank"
    assert len(found["rows.csv"].splitlines()) == 21
    page, printed = found["contest.html"], capsys.readouterr().out
    assert page.count("<svg") == 1
    assert "seed 3" in page
    assert "--setting selection=reps" in page
    for text in (page, printed):
        assert "-10.00 points (-10.00 to -10.00), 10 pairs" in text
        assert "made up: so it is" in text
    capsys.readouterr()
    assert held(tmp_path, 10, monkeypatch, BrokenOff(0), "--format", "json") == 0
    records = json.loads(capsys.readouterr().out)
    assert [list(row) for row in records] == [HEAD] * len(rows)
    kept = {row["algorithm"]: list(row.values())[5:] for row in records if row["metric"] == "goodput_kept"}
    assert kept["mrc"] == [10, pytest.approx(0.8945), "mrc", *[None] * 4, 0.01, None, None, 1, 1, 1]
    assert kept["reps"][3:8] == [10, *[pytest.approx(-0.1)] * 3, 0.01]
    assert kept["reps"][9:] == ["worse", 2, 2, 2]
    for record, row in zip(records, rows, strict=True):
        for value, text in zip(record.values(), row, strict=True):
            assert text == "" if value is None else value == (value if text == value else pytest.approx(float(text)))


def test_a_contest_that_is_broken_off_goes_on_and_ends_as_if_it_had_not_been(tmp_path, monkeypatch, capsys) -> None:
    quick, whole = tmp_path / "broken", tmp_path / "whole"
    quick.mkdir()
    whole.mkdir()
    assert held(quick, 8, monkeypatch, BrokenOff(7)) == 130
    (page,) = (quick / "runs" / "contests").glob("*/contest.html")
    assert f"the page has the results so far: {page}\n" in capsys.readouterr().err
    assert len(files(quick)["rows.csv"].splitlines()) == 8
    rest = BrokenOff(9)
    assert held(quick, 8, monkeypatch, rest) == 0
    assert rest.left == 0
    assert held(whole, 8, monkeypatch) == 0
    numbers = [[row[1:] for row in csv.reader(files(folder)["contest.csv"].splitlines())] for folder in (quick, whole)]
    assert numbers[0] == numbers[1]


def test_a_contest_whose_disk_fills_while_runs_are_kept_says_where_its_table_is(tmp_path, monkeypatch, capsys) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    assert held(tmp_path, 3, monkeypatch, keep=full) != 0
    (page,) = (tmp_path / "runs" / "contests").glob("*/contest.html")
    said = capsys.readouterr().err
    assert f"the page has the results so far: {page}\n" in said
    assert "no space left on device" in said
    assert len(files(tmp_path)["rows.csv"].splitlines()) == 1 + 2 * 3


def test_runs_that_an_error_ended_are_named_and_the_contest_is_unknown(tmp_path, monkeypatch) -> None:
    def full(task: Task) -> Row:
        row = made_up(task)
        return replace(row, verdict="unknown", metrics={}, error="OSError: no space") if task.seed == 2 else row

    assert held(tmp_path, 6, monkeypatch, full) == 3
    assert "2 runs were broken off" in files(tmp_path)["contest.html"]


def test_a_run_that_could_not_be_kept_is_named_with_its_command_and_reason(tmp_path, monkeypatch, capsys) -> None:
    def full(task: Task) -> Row:
        return replace(made_up(task), error="OSError: /x: no space left on device" if task.keep else "")

    assert held(tmp_path, 1, monkeypatch, full, keep=contest.keep_worst) in (0, 3)
    found = re.findall(r"could not be kept, broken off: (.*)\n", capsys.readouterr().out)
    assert len(found) == 2
    assert all(re.fullmatch(r"\./lab run .* --seed 1: OSError: /x: no space left on device", one) for one in found)


def test_the_worst_run_of_each_is_kept_with_its_replay_and_made_once(tmp_path: Path) -> None:
    words = ["contest", "--algorithms", "mrc,reps", "--scenario", str(write_quick(tmp_path)), "--seeds", "1"]
    words += ["--time", "1", "--workers", "1", "--plain", "--runs", str(tmp_path / "runs")]
    assert main(words) in (0, 3)
    replays = sorted(tmp_path.glob("runs/contests/*/worst/*/quick/*/replay.html"))
    assert len(replays) == 2
    page = next(tmp_path.glob("runs/contests/*/contest.html"))
    for replay in replays:
        assert f'href="{replay.relative_to(page.parent)}"' in page.read_text()
        assert replay.with_name("report.html").exists()
        replay.unlink()
    replays[0].with_name("verdict.json").unlink()
    assert main(words) in (0, 3)
    again = sorted(tmp_path.glob("runs/contests/*/worst/*/quick/*/replay.html"))
    assert len(again) == 2
    assert replays[1] in again, "a run that lacks its replay alone is not made again"


QUARTER = """
from endpoint.mrc import Selection


class Quarter(Selection):
    heeds_signals = True

    def next(self, usable):
        only = min(self.evs.live, key=lambda plane: plane.bit)
        return only.active[0] if only.bit & usable else None
"""


@pytest.mark.slow
def test_a_selection_of_one_port_of_four_is_never_first_by_what_the_page_leads_with(tmp_path, capsys) -> None:
    (tmp_path / "quarter.py").write_text(QUARTER)
    words = ["contest", "--algorithms", f"mrc,{tmp_path}/quarter.py:Quarter", "--scenario", "grey-link,incast"]
    assert main([*words, "--seeds", "6", "--format", "json", "--runs", str(tmp_path / "runs")]) in (0, 3)
    own = [one for one in json.loads(capsys.readouterr().out) if one["algorithm"] == "quarter.py:Quarter"]
    leading = {(one["scenario"], one["metric"]): one for one in own if one["metric"] in LEADING}
    assert len(leading) == 2 * len(LEADING)
    for one in leading.values():
        assert (one["meaning"], one["rank"]) == ("worse", 2)
    assert [one["rank"] for one in own if one["metric"] not in LEADING] == [None] * (len(own) - len(leading))
