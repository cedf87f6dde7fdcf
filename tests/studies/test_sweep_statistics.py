"""The statistics of sweeps, against published tables and against simulation."""

import random

import pytest
from hypothesis import given, strategies as st

from judging.run import Run
from studies.sweeping.metric import measured
from studies.sweeping.paired import PairedDifference, difference, interval, student
from studies.sweeping.proportion import down, share, up, wilson
from studies.sweeping.quantile import Quantile, band, quantile, ranks
from studies.sweeping.row import Row
from studies.sweeping.statement import contrasts, document, statement
from studies.sweeping.text import summary
from studies.sweeping.until import ERROR, Until, parse_share
from studies.sweeping.variant import Variant
from tests.helpers.made_up_run import made_up_lines


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilsons_interval_is_that_of_newcombes_table(count: int, of: int, low: float, high: float) -> None:
    """R. G. Newcombe, Statistics in Medicine 17 (1998), table I, method 3."""
    assert list(wilson(count, of)) == pytest.approx([low, high], abs=5e-5)


def test_299_runs_without_a_failure_say_at_least_99_percent_298_do_not_and_none_say_nothing() -> None:
    assert share(299, 299).low >= 0.99 > share(298, 298).low
    assert share(0, 299).high <= 0.01 < share(0, 298).high
    assert share(299, 299).high == 1.0
    assert share(299, 299).describe() == "100 % (at least 99.0)"
    assert (share(0, 0).low, share(0, 0).high, share(0, 0).value) == (0.0, 1.0, None)
    with pytest.raises(ValueError, match="3 of 2 is no share"):
        share(3, 2)


@pytest.mark.parametrize(("n", "rule_of_three"), [(30, 0.1), (100, 0.03), (1000, 0.003)])
def test_no_failure_in_n_runs_bounds_failures_by_the_rule_of_three(n: int, rule_of_three: float) -> None:
    """J. A. Hanley and A. Lippman-Hand, JAMA 249 (1983): at most about 3/n."""
    assert share(0, n).high == pytest.approx(rule_of_three, rel=0.06)


@pytest.mark.parametrize(
    ("count", "of", "words"),
    [
        (9999, 10_000, "99.99 % (99.9 to 100.0)"),
        (1, 10_000, "0.01 % (0.0 to 0.1)"),
        (999_999, 1_000_000, "99.9999 % (99.9 to 100.0)"),
        (298, 300, "99.3 % (97.6 to 99.9)"),
        (1999, 2000, "99.95 % (99.7 to 100.0)"),
        (10_000, 10_000, "100 % (at least 99.9)"),
    ],
)
def test_one_failure_is_never_rounded_away(count: int, of: int, words: str) -> None:
    assert share(count, of).describe() == words


@given(st.integers(1, 3000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_an_interval_holds_its_share_and_its_words_never_say_more_than_is_known(counts: tuple[int, int]) -> None:
    found = share(*counts)
    assert found.value is not None
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert float(down(found.low)) <= 100 * found.low + 1e-6
    assert float(up(found.high)) >= 100 * found.high - 1e-6


@pytest.mark.parametrize(("n", "low", "high"), [(10, 2, 9), (20, 6, 15), (50, 18, 33), (100, 40, 61)])
def test_the_median_lies_between_the_order_statistics_of_published_tables(n: int, low: int, high: int) -> None:
    """Confidence limits for the median: W. J. Conover, Practical Nonparametric Statistics; n = 6 is the least."""
    assert ranks(n, 0.5) == (low, high)
    assert ranks(5, 0.5) == (None, None)
    assert ranks(6, 0.5) == (1, 6)


def test_a_quantile_has_bounds_of_the_sample_a_99th_from_368_runs_on_and_an_ecdf_massarts_band() -> None:
    """Conover's ranks of 20 values are 6 and 15; the median is the smallest value that half of them do not exceed."""
    assert quantile([float(value) for value in range(20, 0, -1)], 0.5) == Quantile(10.0, 6.0, 15.0)
    assert quantile([3.0, 1.0], 0.5) == Quantile(1.0, None, None)
    assert ranks(1, 0.5, confidence=0.0) == (1, 1)  # a bound that leaves exactly its error is one
    # 0.99^n <= 0.025, as in the tables of tolerance limits of S. S. Wilks, half of the error at each end.
    assert ranks(367, 0.99)[1] is None
    assert ranks(368, 0.99)[1] == 368
    assert quantile([float(n) for n in range(1, 101)], 0.99).value == 99.0
    assert ranks(20_000, 0.5)[0] == pytest.approx(9861, abs=2)  # the normal approximation: 10,000 − 1.96 √5,000
    assert band(100) == pytest.approx(0.1358, abs=1e-4)  # √(ln 40 / 200)


def test_99_percent_is_known_after_332_runs_without_failure_and_refuted_after_three_failures() -> None:
    sound, broken = Until(0.99), Until(0.99)
    while sound.known is None:
        sound.add("true")
    while broken.known is None:
        broken.add("false")
    assert (sound.known, sound.runs) == (True, 332)
    assert (broken.known, broken.runs) == (False, 3)


@pytest.mark.parametrize(("truth", "wrong"), [(0.99, False), (0.995, False), (0.9899, True), (0.97, True)])
def test_a_stopping_rule_that_looks_after_every_run_is_wrong_in_at_most_5_percent_of_sweeps(truth, wrong) -> None:
    chance, sweeps, mistaken = random.Random(7), 800, 0
    for _ in range(sweeps):
        test = Until(0.99)
        for _ in range(1500):
            if test.add("true" if chance.random() < truth else "false") is not None:
                break
        mistaken += test.known is wrong
    assert share(mistaken, sweeps).low <= ERROR


def test_a_stopping_rule_finds_out_what_is_far_from_a_high_or_modest_target() -> None:
    chance = random.Random(3)
    for truth, wanted in ((0.9995, True), (0.9, False)):
        for _ in range(50):
            test = Until(0.99)
            while test.known is None and test.runs < 20_000:
                test.add("true" if chance.random() < truth else "false")
            assert test.known is wanted
    # Its bets would be more than everything.
    chance = random.Random(5)
    for truth, wanted in ((0.95, True), (0.2, False)):
        test = Until(0.6)
        while test.known is None and test.runs < 2_000:
            test.add("true" if chance.random() < truth else "false")
        assert test.known is wanted


def test_unknown_runs_are_told_apart_are_never_passes_and_refute_nothing() -> None:
    test = Until(0.99)
    assert [test.add("unknown") for _ in range(2000)][-1] is None
    mixed = Until(0.99)
    assert [mixed.add(verdict) for verdict in ["true"] * 331 + ["unknown"]][-1] is None
    assert [mixed.add("true") for _ in range(200)][-1] is None
    assert [mixed.add("true") for _ in range(60)][-1] is True
    found = statement(Variant("smoke"), "claim", rows(300, "tttu"))
    assert (found.verdicts["true"].count, found.verdicts["unknown"].count) == (225, 75)
    assert found.verdicts["true"].value == 0.75


def test_words_for_a_share_are_read_and_refused() -> None:
    assert parse_share("99%") == parse_share("0.99") == 0.99
    with pytest.raises(ValueError, match=r"a share such as 99% \(got 'many'\)"):
        parse_share("many")
    with pytest.raises(ValueError, match="above 50% and below 100%"):
        Until(1.0)


@pytest.mark.parametrize(
    ("confidence", "degrees", "expected"),
    [(0.95, 1, 12.706), (0.95, 4, 2.776), (0.95, 5, 2.571), (0.95, 19, 2.093), (0.99, 4, 4.604), (0.99, 9, 3.250),
     (0.999, 10, 4.587), (0.9, 2, 2.920), (0.95, 120, 1.980)],
)  # fmt: skip
def test_quantiles_of_student_are_those_of_printed_tables(confidence: float, degrees: int, expected: float) -> None:
    """Abramowitz and Stegun, table 26.10."""
    assert student(confidence, degrees) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("pairs", [5, 8, 20])
def test_intervals_of_few_pairs_hold_the_mean_as_often_as_they_say(pairs: int) -> None:
    """Of 2,000 intervals some 1,900 do, give or take three times ten."""
    chance = random.Random(11)
    samples = ([chance.gauss(2.0, 3.0) for _ in range(pairs)] for _ in range(2_000))
    held = sum(low <= 2.0 <= high for low, high in map(interval, samples))
    assert 1_870 <= held <= 1_930


@pytest.mark.parametrize(("pairs", "bounded"), [(4, False), (5, True)])
def test_five_pairs_are_the_fewest_that_bound_a_difference(pairs: int, bounded: bool) -> None:
    found = difference(dict.fromkeys(range(pairs), 1.0), dict.fromkeys(range(pairs), 3.0))
    assert found is not None
    assert (found.mean, found.low is not None, found.clear) == (2.0, bounded, bounded)


def test_differences_are_of_pairs_of_the_same_seed() -> None:
    first = {seed: float(seed * seed) for seed in range(40)}
    second = {seed: first[seed] + 1.0 for seed in range(5, 60) if seed in first}
    found = difference(first, second)
    assert found is not None
    assert (found.pairs, found.mean, found.low, found.high) == (35, 1.0, 1.0, 1.0)
    assert not PairedDifference(3, -1.0, -2.0, 0.0).clear, "an interval that ends at zero holds zero"
    assert found.clear
    few = difference({1: 1.0}, {1: 3.0})
    assert few is not None
    assert (few.mean, few.low) == (2.0, None)
    assert difference({1: 1.0}, {2: 1.0}) is None


# --- what is said of many runs


def rows(count: int, verdicts: str, **metrics: float) -> list[Row]:
    """The verdicts are repeated by their first letters."""
    names = {"t": "true", "f": "false", "u": "unknown"}
    return [Row(f"k{n}", n, names[verdicts[n % len(verdicts)]], metrics=metrics) for n in range(count)]


def test_checks_are_counted_by_how_often_they_were_false_and_unknown() -> None:
    made = [
        Row(f"k{n}", n, "false", {"moves": holds, "heals": True}) for n, holds in enumerate((False, None, True, False))
    ]
    assert statement(Variant("smoke"), "", made).checks == {"moves": (2, 1)}


def test_only_variants_that_differ_in_one_thing_are_contrasted() -> None:
    mrc, roce = Variant("smoke"), Variant("smoke", "roce")
    other = Variant("smoke", "roce", sets=(("trimming.enabled", "false"),))
    sides = [statement(one, "", rows(10, "t", p99_step=float(n))) for n, one in enumerate((mrc, roce))]
    assert [one.axis for one in contrasts(sides)] == ["transport"]
    assert contrasts(sides)[0].metrics["p99_step"].mean == 1.0
    assert contrasts([sides[0], statement(other, "", rows(10, "t"))]) == []


@pytest.mark.parametrize(
    ("others", "routes"),
    [
        ({}, "avoid a dead link after 0.1 s"),
        ({"reconvergence": 0.5}, "avoid a dead link after 0.5 s"),
        ({"reconvergence": None}, "never change"),
    ],
)
def test_a_sweep_says_that_a_baseline_has_one_plane_and_when_it_is_rerouted(others, routes: str) -> None:
    made = [Variant("smoke"), *(Variant("smoke", name, others=tuple(others.items())) for name in ("roce", "roce-16qp"))]
    told = summary([statement(one, "", rows(10, "t")) for one in made])
    for name in ("roce", "roce-16qp"):
        assert f"  {name}: one plane at the sum of the rates, routes that {routes}\n" in told
    assert told.count("one plane") == 2


def test_a_document_says_what_a_sweep_stopped_at_and_what_its_numbers_are() -> None:
    test = Until(0.99)
    for row in (made := rows(400, "t", goodput_kept=0.5)):
        test.add(row.verdict)
    one, plain = (statement(Variant("smoke"), "claim", made, until) for until in (test, None))
    (said,), (other,) = document([one])["variants"], document([plain])["variants"]
    assert (said["until"], other["until"]) == ({"target": 0.99, "known": True}, None)
    assert said["metrics"]["goodput_kept"]["quantiles"]["0.5"]["value"] == 0.5
    assert (said["runs"], said["seeds"][-1], said["verdicts"]["true"]["share"]) == (400, 399, 1.0)


# --- the numbers of one run


def test_metrics_of_a_run_say_what_its_dip_says_and_none_that_needs_a_missing_part() -> None:
    """Half of the goodput for 2 s of the 10 s under faults; a step of 3 s; goodput back once the link is up again."""
    found = measured(Run(made_up_lines(dip=0.5, slow_step_ns=3_000_000_000)))
    assert found["goodput_kept"] == pytest.approx(0.9, abs=0.01)
    assert found["p99_step"] > 2
    assert found["fault_cost"] > 0
    assert found["fault_cost"] == float(f"{found['fault_cost']:.9g}")
    found = measured(Run([]))
    assert set(found) <= {"goodput", "resent"}
    made = made_up_lines()
    late = [line for line in made if line["kind"] != "step" or line["t_ns"] > 12_000_000_000]
    early = [line for line in made if line["kind"] != "step" or line["t_ns"] < 12_000_000_000]
    assert "p99_step" in measured(Run(made))
    assert "p99_step" not in measured(Run(late))
    assert "p99_step" not in measured(Run(early))
    assert "fault_cost" not in measured(Run([line for line in made if line["kind"] != "fault"]))
