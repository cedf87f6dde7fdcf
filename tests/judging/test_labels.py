"""Names on charts: none lies on another, every one that has room is there, faults are named."""

from hypothesis import given, strategies as st

from judging.reports import plots
from judging.reports.plots import ROWS_MAX, placed

NAMES = st.lists(st.tuples(st.floats(0, 80), st.text("abcdefgh", min_size=1, max_size=30)), max_size=25)


@given(NAMES)
def test_no_name_lies_on_another_or_beyond_the_chart(names: list[tuple[float, str]]) -> None:
    end, characters = 80.0, 105.0
    labels = placed(names, end, characters)
    assert len(labels) == len(names)
    for row in range(ROWS_MAX):
        ends_at = 0.0
        for label in (label for label in labels if label.row == row):
            assert label.at >= ends_at - 1e-6
            ends_at = label.at + len(label.text) * end / characters
            assert ends_at <= end + 1e-6


def test_names_that_have_room_are_all_there() -> None:
    labels = placed([(0.0, "warmup"), (4.0, "reference"), (20.0, "faults")], 80.0, 105.0, rows=1)
    assert [label.row for label in labels] == [0, None, 0]  # a short phase gives its place to the one before it
    assert [label.row for label in placed([(0.0, "warmup"), (4.0, "reference")], 80.0, 105.0)] == [0, 1]


def test_a_chart_names_its_faults_and_phases(made_up) -> None:
    chart = plots.goodput_over_time([("mrc", made_up())])
    for said in ("link-down p0l0-p0s1", "reference", "faults"):
        assert said in chart
