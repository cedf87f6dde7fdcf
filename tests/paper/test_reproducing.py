"""The framework of `./lab reproduce`: what is compared, what is kept, what the page says."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cli import main as cli
from endpoint.mrc.presets import RULES
from judging.run import Run
from paper import catalogue, perform, profile, random_loss, readings
from paper.clock import Clock
from paper.cluster import A, B, C, D
from paper.figure import Chart, Experiment, Failing, Figure, Measured, Order, PaperCurve, Part, Quantity
from paper.measuring import sample_gbps
from paper.memory import MemoryBudget, longest_first, needed_bytes
from paper.outcome import (
    BEYOND,
    CALIBRATION,
    INSIDE,
    NOT_RUN,
    POWERLESS,
    UNREACHABLE,
    WITHIN_FAR,
    WITHIN_NEAR,
    WITHIN_READING,
    Compared,
    Comparison,
    Outcome,
)
from paper.perform import FigureTask
from paper.report import page, standing, table
from paper.reproduction import Reproduction
from running.document import spec_of
from running.estimate import estimate
from studies.farm.engine import Inline
from studies.sweeping.row import Row
from studies.sweeping.sweep import RowStore
from studies.sweeping.task import VersionError
from tests.helpers.page_text import text_of
from tests.helpers.quick_sweep import inline
from topo.planfile import parse_document, plan_document

FAILS = Failing("twice the window", "one:other")


def quantity(paper: float, fails: Failing | None = FAILS, **more: object) -> Quantity:
    return Quantity("rate", paper, "Gb/s", "one:rate", "by hand", fails=fails, **more)  # type: ignore[arg-type]


def compared(one: Quantity, ours: float | None, interval: tuple[float, float] | None = None) -> Comparison:
    return Comparison(one, ours, interval, failing=1e9)


@pytest.mark.parametrize(
    ("paper", "ours", "verdict"),
    [
        (100.0, 104.9, WITHIN_NEAR), (100.0, 95.1, WITHIN_NEAR), (100.0, 94.9, WITHIN_FAR),
        (100.0, 114.9, WITHIN_FAR), (100.0, 115.1, BEYOND), (100.0, 0.0, BEYOND), (-2.0, -2.05, WITHIN_NEAR),
    ],
)  # fmt: skip
def test_a_difference_is_relative_to_the_papers_number(paper: float, ours: float, verdict: str) -> None:
    assert compared(quantity(paper), ours).verdict == verdict


@pytest.mark.parametrize(
    ("paper", "ours", "agrees"),
    [
        (1.0, 0.5, False), (1.0, 2.0, False), (0.5, 1.0, False), (2.0, 1.0, False), (1.0, 1.0, True),
        (1.0, 0.98, True), (0.98, 1.02, True), (0.5, 0.6, True), (1.5, 3.0, True), (0.9, 1.1, False),
    ],
)  # fmt: skip
def test_an_exact_tie_agrees_with_ties_alone(paper: float, ours: float, agrees: bool) -> None:
    assert Compared(Order("first", "second"), paper, ours).agrees is agrees


def test_a_number_that_the_paper_gives_as_zero_needs_a_scale_and_below_an_upper_bound_all_agrees() -> None:
    assert compared(quantity(0.0, scale=100.0), 4.0).difference == pytest.approx(0.04)
    with pytest.raises(ValueError, match="`scale` must say"):
        _ = compared(quantity(0.0), 4.0).difference
    assert compared(quantity(5.0, at_most=True), 2.5).verdict == WITHIN_NEAR
    assert compared(quantity(5.0, at_most=True), 6.0).verdict == BEYOND


def test_a_row_has_power_only_if_its_experiment_is_wrong_by_more_than_the_readings_error() -> None:
    assert Comparison(quantity(100.0), 100.0, failing=114.0).verdict == POWERLESS
    assert Comparison(quantity(100.0), 100.0, failing=116.0).verdict == WITHIN_NEAR
    assert Comparison(quantity(100.0), 200.0, failing=116.0).verdict == BEYOND
    assert Comparison(quantity(100.0), 100.0, failing=None).verdict == NOT_RUN
    assert Comparison(quantity(100.0, fails=None), 100.0).verdict == POWERLESS
    assert Comparison(quantity(100.0, unreachable="no model"), 100.0, failing=1.0).verdict == UNREACHABLE
    assert Comparison(quantity(0.5, error=0.1), 0.5, failing=0.6).verdict == POWERLESS


def test_an_interval_over_seeds_agrees_with_what_lies_in_it_and_has_no_power_over_it() -> None:
    assert compared(quantity(100.0), 150.0, (90.0, 200.0)).verdict == INSIDE
    assert compared(quantity(100.0), 104.0, (90.0, 200.0)).verdict == INSIDE, "seeds spread farther than 15 %"
    assert compared(quantity(100.0), 104.0, (86.0, 114.0)).verdict == WITHIN_NEAR
    assert compared(quantity(100.0), 104.0, (102.0, 116.0)).verdict == INSIDE
    assert compared(quantity(100.0, error=60.0), 150.0, (90.0, 200.0)).verdict == INSIDE
    assert compared(quantity(100.0), 150.0, (120.0, 200.0)).verdict == BEYOND
    assert Comparison(quantity(100.0), 150.0, (90.0, 200.0), failing=199.0).verdict == POWERLESS


@pytest.mark.parametrize(
    ("ours", "verdict"), [(0.51, WITHIN_NEAR), (0.54, WITHIN_FAR), (0.6, WITHIN_READING), (0.65, BEYOND)]
)
def test_a_far_difference_within_the_readings_error_has_its_own_verdict(ours: float, verdict: str) -> None:
    assert compared(quantity(0.5, error=0.1), ours).verdict == verdict


def test_rows_within_the_readings_error_are_counted_apart_on_the_page_and_in_json() -> None:
    figure = own_figure()
    rate, *others = figure.quantities
    made_ = [made(["one"], replace(figure, quantities=(replace(rate, error=20.0), *others)))]
    content = json.loads(standing.document(made_))
    assert (content["judged"], content["within_5"], content["within_reading"]) == (1, 0, 1)
    assert content["within_15"] == content["compatible"] == 0
    shown = text_of(page.html(made_))
    assert "1 are more than 15 % off and within the reading's error, and 0 are farther off." in " ".join(shown.split())
    assert "| −20.0% | within the reading's error |" in shown
    assert "| figure |  | within 5 % | 5 to 15 % | interval | within reading | farther off | judged |" in shown
    assert "| all |  | 0 | 0 | 0 | 1 | 0 | 1 |" in shown
    assert '<span class="mark unknown">within the reading&#x27;s error</span>' in page.html(made_)
    assert "within the reading's error" in table.quantity_lines(made_)


def test_a_calibrating_number_counts_for_nothing_and_a_row_without_a_number_of_ours_is_kept() -> None:
    assert compared(quantity(5.0, calibrates=True), 5.0).verdict == CALIBRATION
    missing = Quantity("rate", 5.0, "Gb/s", None, "", why="nobody models it")
    assert compared(missing, None).verdict == UNREACHABLE
    assert compared(quantity(5.0), None).verdict == NOT_RUN


def test_a_transient_is_diluted_in_a_sample_of_the_papers_length_and_a_compressed_second_is_a_part() -> None:
    # 100 Gb/s missing for 22 ms in a sample of 220 ms take a tenth of 100 Gb/s off.
    assert sample_gbps(1533.0, 100e9 * 0.022, 0.22) == pytest.approx(1523.0)
    assert sample_gbps(1.0, 1e12, 0.22) == 0.0
    clock = Clock.compressed(B, 10_000)
    assert clock.lab_s(1.0) * B.pace == pytest.approx(1e-4)
    fault = clock.fault(5.0, "port-down", "h0.p0", until=17.0)
    assert fault.for_s is not None
    assert fault.for_s * B.pace == pytest.approx(12e-4)
    assert Clock.round_trips(B).lab_s(3) * B.pace * 1e9 == pytest.approx(3 * B.base_rtt_ns)


def test_every_cluster_has_the_rates_of_the_papers_table() -> None:
    rates = {plan.name: plan.planes * plan.links.host_rate_bps / 1e9 for plan in (A, B, C, D)}
    assert rates == {"cluster-a": 800, "cluster-b": 800, "cluster-c": 400, "cluster-d": 400}
    for plan in (A, B, C, D):
        assert parse_document(plan_document(plan)) == plan
    single = {plan.name: plan.single_plane().links.host_rate_bps / 1e9 for plan in (A, B, C, D)}
    assert single["cluster-c"] == 400


@pytest.mark.parametrize("name", catalogue.MODULES)
def test_every_figure_compares_only_what_its_parts_have(name: str) -> None:
    figure = catalogue.find(name)
    parts = {part.name for part in figure.parts(False)}
    assert figure.name == name
    assert parts == {part.name for part in figure.parts(True)}
    named = [one.measured for one in figure.quantities if one.measured is not None]
    named += [curve for chart in figure.charts for curve in chart.ours]
    named += [one.measured for one in figure.experiments]
    named += [one.fails.measured for one in figure.quantities if one.fails is not None]
    named += [name for one in figure.quantities for name in one.seeds]
    assert {one.quantity for one in figure.experiments} <= {one.name for one in figure.quantities}
    assert {one.partition(":")[0] for one in named} <= parts
    assert all(one.why for one in figure.quantities if one.measured is None)
    assert all(one.scale for one in figure.quantities if one.paper == 0 and one.measured)
    names = [one.name for one in figure.quantities]
    assert {name for one in figure.orders for name in (one.first, one.second)} <= set(names)
    assert len(names) == len(set(names))
    for one in figure.quantities:
        assert one.paper == readings.of(name)[one.name].value
        assert one.source
        if figure.of_paper and one.measured and not one.calibrates and not one.unreachable:
            assert (one.fails is None) == bool(one.powerless), f"{one.name} names no experiment, or a reason besides"
        assert len(one.seeds) == 0 or len(set(one.seeds)) >= 20


def test_the_list_has_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["reproduce", "--list"]) == 0
    said = capsys.readouterr().out
    for name in catalogue.MODULES:
        assert any(line.split()[0] == name for line in said.splitlines())


def test_a_key_changes_with_the_form_and_the_part() -> None:
    figure = catalogue.find("5.2.1")
    keys = {perform.task(figure, part, short).key for short in (False, True) for part in figure.parts(short)}
    assert len(keys) == 2 * len(figure.parts(False))


def test_a_key_changes_with_the_traffic() -> None:
    """A device profile changes no setting of the transport where it makes hosts slower."""

    def hashes() -> dict[str, str]:
        return dict(perform.task(catalogue.find("16"), perform.parts_of("16", False)["mrc-0-2"], False).hashes)

    known = hashes()
    with pytest.MonkeyPatch.context() as patch:
        slower = replace(random_loss.PROFILE, collective={**random_loss.PROFILE.collective, "slice_ns": 1})
        patch.setattr(random_loss, "PROFILE", slower)
        perform.parts_of.cache_clear()
        changed = hashes()
    perform.parts_of.cache_clear()
    assert [name for name in known if known[name] != changed[name]] == ["traffic"]


def test_a_run_that_ends_with_its_work_is_not_refused_for_the_length_of_its_phases() -> None:
    """At 1 % loss RoCE may take hours of virtual time; the packets are few."""
    for figure, part in (("16", "roce-1-qp-1-2"), ("17", "roce-16-qp-1-2")):
        assert estimate(perform.spec(figure, perform.parts_of(figure, False)[part], False)).seconds < 600


def test_a_worker_with_other_code_refuses() -> None:
    figure = catalogue.find("5.2.1")
    good = perform.task(figure, figure.parts(True)[0], True)
    with pytest.raises(VersionError, match="code was changed"):
        perform.perform("", replace(good, hashes={"run": "other"}))


def test_what_was_made_is_kept_and_what_broke_is_made_again(tmp_path: Path) -> None:
    figure = catalogue.find("5.2.1")
    asked: list[str] = []

    def work(task: FigureTask) -> Row:
        asked.append(task.part)
        broke = "disk full" if task.part == "latency-cross" and len(asked) < 5 else ""
        return Row(task.key, 1, "made", metrics={"half": 5.0, "rate": 700.0}, error=broke)

    with RowStore(tmp_path) as store:
        first = Reproduction([figure], store, short=True)
        first.run(inline(work), roomy(first))
        assert [one.complete for one in first.outcomes()] == [False]
        again = Reproduction([figure], store, short=True)
        assert again.made_before == len(figure.parts(True)) - 1
        again.run(inline(work), roomy(again))
    assert asked.count("latency-cross") == 2
    assert len(asked) == len(figure.parts(True)) + 1
    (outcome,) = again.outcomes()
    assert outcome.complete
    assert [one.ours for one in outcome.comparisons] == [5.0, 5.0, 700.0, 700.0]


HASHED = {
    "16": {
        "RoCE 1 QP, 1 % loss, 32 MB": True, "RoCE 1 QP, 0 % loss, 64 MB": True, "RoCE 16 QP, 1 % loss, 16 MB": False,
    },
    "17": {"RoCE 16 QP, 1 % loss, 16 MB": True, "RoCE 1 QP, 0.1 % loss, 2 MB": False, "MRC, 1 % loss, 16 MB": False},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("figure", HASHED)
def test_roce_on_few_queue_pairs_is_an_interval_where_that_is_asked_for(figure: str, tmp_path: Path) -> None:
    def work(task: FigureTask) -> Row:
        seed = task.part.partition("-seed-")[2]
        return Row(task.key, 1, "made", metrics={"busbw": float(seed or 1)})

    found: dict[bool, dict[str, Comparison]] = {}
    for asked in (False, True):
        with RowStore(tmp_path / str(asked)) as store:
            reproduction = Reproduction([catalogue.find(figure)], store, intervals=asked)
            reproduction.run(inline(work), roomy(reproduction))
            (outcome,) = reproduction.outcomes()
        assert outcome.complete
        found[asked] = {one.quantity.name: one for one in outcome.comparisons}
    for quantity, hashed in HASHED[figure].items():
        alone, with_seeds = found[False][quantity], found[True][quantity]
        assert (alone.ours, alone.interval) == (1.0, None), quantity
        assert (with_seeds.ours, with_seeds.interval) == ((10.5, (1.0, 20.0)) if hashed else (1.0, None)), quantity


@pytest.mark.parametrize("name", catalogue.MODULES)
def test_a_figure_has_intervals_if_runs_with_other_seeds_decide_a_quantity(name: str) -> None:
    figure = catalogue.find(name)
    again = {part.name for part in figure.parts(False) if part.again}
    decided = {one.name for one in figure.quantities for seed in one.seeds if seed.partition(":")[0] in again}
    assert bool(decided) is (name in catalogue.WITH_INTERVALS)


def test_each_seed_of_a_lossy_run_draws_other_losses() -> None:
    parts = {part.name: part for part in catalogue.find("16").parts(False)}
    first, other = (parts[f"roce-1-qp-1-4{ending}"] for ending in ("", "-seed-2"))
    assert (first.seed, other.seed) == (1, 2)
    drawn = [{fault.seed for fault in part.faults} for part in (first, other)]
    assert len(drawn[0]) == len(drawn[1]) == 64
    assert not drawn[0] & drawn[1]
    assert first.workloads == other.workloads


def roomy(reproduction: Reproduction) -> MemoryBudget:
    return MemoryBudget(reproduction.missing, 10**12)


class Side(Inline[FigureTask, Row]):
    """An engine of two that notes which runs were under way together; the one taken first ends first."""

    workers = 2

    def __init__(self) -> None:
        super().__init__(lambda scratch, task: Row(task.key, 1, "made"))
        self.together: list[list[str]] = []

    def next(self) -> Row:
        self.together.append([task.part for task in self._jobs])
        return super().next()


def test_runs_that_need_more_memory_than_there_is_wait_or_are_left_out_and_named(tmp_path: Path) -> None:
    with RowStore(tmp_path) as store:
        reproduction = Reproduction([catalogue.find("5.2.1")], store, short=True)
        names = [task.part for task in reproduction.missing]
        sizes = dict(zip(names, (500, 450, 300, 901, 1, 1), strict=True))
        budget = MemoryBudget(reproduction.missing, 1000, lambda task: sizes[task.part])
        engine = Side()
        reproduction.run(engine, budget)
    # A tenth is left to the system.
    assert engine.together[:2] == [[names[0], names[2]], [names[2], names[1]]]
    assert budget.refused == [
        f"figure 5.2.1, {names[3]}: about 901 bytes of memory, and this machine has 1000 bytes to spare"
    ]


def test_the_longest_runs_are_made_first() -> None:
    figure = catalogue.find("16")
    tasks = [perform.task(figure, part, False) for part in figure.parts(False) if part.name.startswith("mrc-0-")]
    names = [task.part for task in longest_first(tasks)]
    assert names == [f"mrc-0-{size}" for size in (64, 32, 16, 8, 4)] + ["mrc-0-2", "mrc-0-2-bare"]


def test_the_largest_ring_is_held_to_take_what_was_measured() -> None:
    """With its payload the ring of 64 MB was measured to take 8.8 GB: two buffers a rank, and what all share once."""
    figure = catalogue.find("16")
    (largest,) = [one for one in figure.parts(False) if one.name == "mrc-0-64"]
    counted = needed_bytes(perform.task(figure, largest, False))
    spec = perform.spec("16", largest, False)
    real = replace(spec, choices=replace(spec.choices, transport=largest.transport))
    assert 8.8e9 < estimate(real).memory_bytes < 1.2 * 8.8e9
    assert counted < estimate(real).memory_bytes / 4


def made(parts: Sequence[str], figure: Figure) -> Outcome:
    row = Row("k", 1, "made", metrics={"rate": 80.0, "other": 95.0, "broken": 5.0}, curves={"rate": [[0, 1], [1, 2]]})
    return Outcome(figure, dict.fromkeys(parts, row), ["one"])


def own_figure() -> Figure:
    part = Part(
        "one", A, perform.parts_of("5.2.1", False)["latency-local"].transport, [], [], lambda run: measured(run)
    )
    return Figure(
        name="99",
        title="A <b>figure</b>",
        caption="Two hosts.",
        parts=lambda short: [part],
        quantities=(
            quantity(100.0, Failing("nothing breaks", "one:broken"), why="half of it is missing"),
            Quantity("none", 3.0, "s", None, "", why="no model"),
            Quantity("dull", 80.0, "s", "one:rate", "", powerless="it is always so"),
        ),
        orders=(Order("rate", "dull"),),
        charts=(Chart("s", "Gb/s", {"one:rate": "MRC"}, [PaperCurve("MRC", [(0.5, 2.0)])]),),
        experiments=(Experiment("twice the window", "rate", "one:other"),),
    )


def measured(run: Run) -> Measured:
    return Measured({"rate": 1.0})


def test_the_page_stands_alone_and_has_a_row_for_each_quantity_order_and_experiment_also_of_a_figure_not_run() -> None:
    whole = page.html([made(["one"], own_figure())])
    assert "A &lt;b&gt;figure" in whole
    assert whole.count("<svg") == 1
    assert not [tag for tag in ("<script", "<link", "src=", 'href="http') if tag in whole]
    shown = text_of(whole)
    assert "MRC, paper" in whole
    assert "| rate | Gb/s | 100 | 80 | −20.0% | farther off | nothing breaks: 5 |" in shown
    assert "| 99 | none | s | 3 | – | no model |" in shown
    assert "| 99 | dull | s | 80 | 80 | it is always so |" in shown
    assert "| 99 | rate | dull | 1.25 | 1 | opposite |" in shown
    assert "| twice the window | rate | Gb/s | 100 | 80 | 95 |" in shown
    assert "half of it is missing" in shown
    shown = text_of(page.html([made([], own_figure())]))
    assert "| rate | Gb/s | 100 | – | – | not run | nothing breaks: – |" in shown


@pytest.mark.parametrize(("paper", "scale", "shown"), [(0.0, 1.0, "+8000.0% of 1"), (-100.0, 100.0, "+180.0%")])
def test_a_difference_names_its_scale_where_that_is_not_the_papers_number(paper, scale, shown) -> None:
    far = quantity(paper, scale=scale)
    figure = replace(own_figure(), quantities=(far,), orders=(), experiments=())
    assert f"| {shown} | farther off | twice the window: 95 |" in text_of(page.html([made(["one"], figure)]))


def test_the_terminal_shows_the_papers_number_beside_ours() -> None:
    shown = table.quantity_lines([made(["one"], own_figure())])
    assert "rate    100    80  Gb/s  −20.0%  farther off" in shown
    assert "none      3     –  s          –  out of reach" in shown
    assert "dull     80    80  s      +0.0%  no power" in shown


def test_the_counts_in_json_are_those_of_its_rows_without_those_of_elsewhere() -> None:
    content = json.loads(standing.document([made(["one"], own_figure())]))
    assert content["judged"] == sum(row["counts"] for row in content["rows"]) == 1
    assert (content["within_5"], content["within_15"], content["without_power"]) == (0, 0, 1)
    assert (content["order_compared"], content["order_agree"], content["out_of_reach"]) == (1, 0, 1)
    counted = ("judged", "calibrating", "without_power", "out_of_reach", "not_run")
    assert sum(content[name] for name in counted) == len(content["rows"])
    content = json.loads(standing.document([made(["one"], replace(own_figure(), of_paper=False))]))
    assert content["judged"] == content["without_power"] == 0


def test_an_order_of_two_calibrated_numbers_or_against_a_rate_of_nothing_does_not_count() -> None:
    figure = own_figure()
    same = replace(figure, quantities=tuple(replace(one, calibrates=True) for one in figure.quantities))
    content = json.loads(standing.document([made(["one"], same)]))
    assert (content["order_compared"], content["order_agree"]) == (0, 0)
    assert "| 99 | rate | dull | 1.25 | 1 | calibration |" in text_of(page.html([made(["one"], same)]))
    # A collective that did not end within its run measures 0: whoever is ahead of it has not won a comparison.
    row = Row("k", 1, "made", metrics={"rate": 80.0, "nothing": 0.0, "other": 95.0, "broken": 5.0}, curves={})
    ended, dull = (replace(one, measured=f"one:{name}") for one, name in zip(
        (own_figure().quantities[0], own_figure().quantities[2]), ("rate", "nothing"), strict=True
    ))  # fmt: skip
    outcome = Outcome(replace(own_figure(), quantities=(ended, dull), charts=()), {"one": row}, ["one"])
    content = json.loads(standing.document([outcome]), parse_constant=pytest.fail)
    assert (content["order_compared"], content["order_agree"]) == (0, 0)
    assert "| 99 | rate | dull | 1.25 | – | not ended |" in text_of(page.html([outcome]))


@pytest.mark.parametrize("name", ["cx8", "pollara"])
def test_a_profile_names_rows_that_there_are(name: str) -> None:
    for figure, rows in profile.load(name).set_from.items():
        assert set(rows) <= {one.name for one in catalogue.find(figure).quantities if one.calibrates}


def test_by_rail_every_hop_of_a_ring_crosses_a_spine_and_by_leaf_few_do() -> None:
    def crossing(order: tuple[str, ...]) -> int:
        leaves = [C.leaf_of(C.host(name)) for name in order]
        return sum(a != b for a, b in zip(leaves, [*leaves[1:], leaves[0]], strict=True))

    assert crossing(random_loss.ranks(C, by_rail=True)) == C.host_count
    assert crossing(random_loss.ranks(C, by_rail=False)) == C.leaves


def test_the_page_of_decisions_has_every_rule_as_it_is() -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    page = " ".join((docs / "decisions" / "presets.md").read_text().split())
    measured = (docs / "reproduction" / "ablation.csv").read_text()
    for rule in RULES:
        assert rule.lab == rule.cx8 or f",without {rule.setting}," in measured
        assert f"`{rule.setting}`: cx8 {rule.cx8}, ocp {rule.ocp} ({rule.source}); lab {rule.lab} ({rule.gain})" in page


def test_with_ocp_mrc_runs_alone_and_skips_a_marked_ev_once(tmp_path: Path) -> None:
    """OCP MRC 7.5.5.5: "Skip once"; UEC 3.6.13.5: an inferred loss comes off the window. RoCE is left out."""
    figures = [catalogue.find(name) for name in ("14", "18")]
    with RowStore(tmp_path) as store:
        usual, worded = (Reproduction(figures, store, short=True, ocp=ocp).missing for ocp in (False, True))
    found = {(one.figure, one.part): spec_of(one.run).choices.transport for one in worded}
    assert {choice.agent for choice in found.values()} == {"mrc"}
    assert set(found) == {(one.figure, one.part) for one in usual if "mrc" in one.part or one.figure == "14"}
    for choice in found.values():
        assert (choice.settings["congested_ev"], choice.settings["losses_shrink"]) == ("skip", True)
    assert not {one.key for one in usual} & {one.key for one in worded}
