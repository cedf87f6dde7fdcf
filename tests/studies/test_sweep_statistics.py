"""The statistics of sweeps, against published tables and against simulation."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.sweeping.paired import bootstrap, difference
from studies.sweeping.proportion import down, share, up, wilson
from studies.sweeping.quantile import band, quantile, ranks
from studies.sweeping.until import ERROR, Until, parse_share


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilsons_interval_is_that_of_newcombes_table(count: int, of: int, low: float, high: float) -> None:
    """R. G. Newcombe, Statistics in Medicine 17 (1998), table I, method 3."""
    assert list(wilson(count, of)) == pytest.approx([low, high], abs=5e-5)


def test_299_runs_without_a_failure_say_at_least_99_percent_and_298_do_not() -> None:
    assert share(299, 299).low >= 0.99 > share(298, 298).low
    assert share(0, 299).high <= 0.01 < share(0, 298).high
    assert share(299, 299).high == 1.0
    assert share(299, 299).words() == "100 % (at least 99.0)"


@pytest.mark.parametrize(("n", "rule_of_three"), [(30, 0.1), (100, 0.03), (1000, 0.003)])
def test_no_failure_in_n_runs_bounds_failures_by_the_rule_of_three(n: int, rule_of_three: float) -> None:
    """J. A. Hanley and A. Lippman-Hand, JAMA 249 (1983): at most about 3/n."""
    assert share(0, n).high == pytest.approx(rule_of_three, rel=0.06)


def test_of_no_runs_nothing_is_known() -> None:
    assert (share(0, 0).low, share(0, 0).high, share(0, 0).value) == (0.0, 1.0, None)
    with pytest.raises(ValueError, match="3 of 2 is no share"):
        share(3, 2)


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


def test_a_99th_percentile_has_an_upper_bound_from_368_runs_on() -> None:
    """0.99^n <= 0.025, as in the tables of tolerance limits of S. S. Wilks, half of the error at each end."""
    assert ranks(367, 0.99)[1] is None
    assert ranks(368, 0.99)[1] == 368
    assert quantile([float(n) for n in range(1, 101)], 0.99).value == 99.0
    assert ranks(20_000, 0.5)[0] == pytest.approx(9861, abs=2)  # the normal approximation: 10,000 − 1.96 √5,000


def test_the_band_of_an_ecdf_is_massarts() -> None:
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
def test_a_stopping_rule_that_looks_after_every_run_is_wrong_in_at_most_5_percent_of_sweeps(
    truth: float, wrong: bool
) -> None:
    chance, sweeps, mistaken = random.Random(7), 800, 0
    for _ in range(sweeps):
        test = Until(0.99)
        for _ in range(1500):
            if test.add("true" if chance.random() < truth else "false") is not None:
                break
        mistaken += test.known is wrong
    assert share(mistaken, sweeps).low <= ERROR


def test_a_stopping_rule_finds_out_what_is_far_from_the_target() -> None:
    chance = random.Random(3)
    for truth, wanted in ((0.9995, True), (0.9, False)):
        for _ in range(50):
            test = Until(0.99)
            while test.known is None and test.runs < 20_000:
                test.add("true" if chance.random() < truth else "false")
            assert test.known is wanted


def test_unknown_runs_are_never_passes_and_refute_nothing() -> None:
    test = Until(0.99)
    assert [test.add("unknown") for _ in range(2000)][-1] is None
    mixed = Until(0.99)
    assert [mixed.add(verdict) for verdict in ["true"] * 331 + ["unknown"]][-1] is None
    assert [mixed.add("true") for _ in range(200)][-1] is None
    assert [mixed.add("true") for _ in range(60)][-1] is True


def test_words_for_a_share_are_read_and_refused() -> None:
    assert parse_share("99%") == parse_share("0.99") == 0.99
    with pytest.raises(ValueError, match=r"a share such as 99% \(got 'many'\)"):
        parse_share("many")
    with pytest.raises(ValueError, match="above 50% and below 100%"):
        Until(1.0)


def test_a_bootstrap_interval_is_about_that_of_student_where_student_is_right() -> None:
    chance = random.Random(11)
    values = [chance.gauss(2.0, 3.0) for _ in range(400)]
    mean = sum(values) / 400
    error = (sum((value - mean) ** 2 for value in values) / 399 / 400) ** 0.5
    low, high = bootstrap(values)
    assert [low, high] == pytest.approx([mean - 1.966 * error, mean + 1.966 * error], abs=0.03)
    assert bootstrap(values) == (low, high)


def test_differences_are_of_pairs_of_the_same_seed() -> None:
    first = {seed: float(seed * seed) for seed in range(40)}
    second = {seed: first[seed] + 1.0 for seed in range(5, 60) if seed in first}
    found = difference(first, second)
    assert found is not None
    assert (found.pairs, found.mean, found.low, found.high) == (35, 1.0, 1.0, 1.0)
    assert found.clear
    few = difference({1: 1.0}, {1: 3.0})
    assert few is not None
    assert (few.mean, few.low) == (2.0, None)
    assert difference({1: 1.0}, {2: 1.0}) is None
