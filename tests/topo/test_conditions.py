"""What faults do to the packets of a path, in the words and numbers that `topo paths` shows."""

import pytest

from topo.fault import arrival, conditions, make_fault
from topo.fault.fault import Fault
from topo.node import Host
from topo.path import path_of_ev, paths
from topo.plan import Plan
from topo.planfile import load_plan
from topo.show import duration, show_paths, show_plan

PLAN = load_plan("tiny")
PATH = next(path for path in paths(PLAN, Host(0), Host(3)) if (path.plane, path.via) == (0, "p0s1"))


def shown(*faults: Fault) -> list[str]:
    return show_paths(PLAN, [path_of_ev(PLAN, Host(0), Host(3), PATH.ev)], faults).splitlines()


def test_a_sound_path_is_shown_from_its_first_switch_to_the_host_without_a_remark() -> None:
    lines = shown()
    assert len(lines) == 5
    assert "DEAD" not in lines[0]
    assert "LOSES" not in lines[0]
    assert [line.split()[0] for line in lines[1:]] == ["p0l0", "p0s1", "p0l1", "h3"]


@pytest.mark.parametrize(
    ("verb", "target", "place", "words"),
    [
        ("link-down", "h0-p0l0", "h0>p0l0", ["EV", "✗"]),
        ("link-down", "p0l0-p0s1", "p0l0>p0s1", ["EV", "p0l0", "✗"]),
        ("blackhole", "p0s1>p0l1", "p0s1>p0l1", ["EV", "p0l0", "p0s1", "✗"]),
        ("switch-crash", "p0s1", "p0s1", ["EV", "p0l0", "✗"]),
        ("switch-stop", "p0l1", "p0l1", ["EV", "p0l0", "p0s1", "✗"]),
    ],
)
def test_nothing_is_shown_of_a_path_beyond_what_no_packet_survives(
    verb: str, target: str, place: str, words: list[str]
) -> None:
    lines = shown(make_fault(PLAN, verb, target))
    assert lines[0].endswith("  DEAD")
    assert [line.split()[0] for line in lines] == words
    assert lines[-1].split()[1] == place
    assert [condition.ends for condition in conditions(PLAN, [make_fault(PLAN, verb, target)], PATH)] == [True]


def test_a_loss_is_shown_where_it_happens_and_losses_on_a_path_compound() -> None:
    faults = [make_fault(PLAN, "loss", "p0l0>p0s1", 25), make_fault(PLAN, "loss", "p0l1>h3", 50)]  # percent
    lines = shown(*faults)
    assert lines[0].endswith("  LOSES 0.625")  # 1 - 0.75 * 0.5
    assert [line.split()[0] for line in lines] == ["EV", "p0l0", "!", "p0s1", "p0l1", "!", "h3"]
    assert "p0l0>p0s1 loses 0.25 of its packets" in lines[2]
    assert [condition.loss for condition in conditions(PLAN, faults, PATH)] == [0.25, 0.5]
    assert arrival(conditions(PLAN, faults, PATH)) == 0.375


def test_a_silent_loss_of_every_packet_is_called_so_and_counts_as_a_whole() -> None:
    (met,) = conditions(PLAN, [make_fault(PLAN, "blackhole", "p0l0>p0s1")], PATH)
    assert (met.text, met.ends, met.loss) == ("loses every packet silently", True, 1.0)


def test_a_switch_says_only_what_happened_to_the_whole_of_it() -> None:
    crash, drain = make_fault(PLAN, "switch-crash", "p0s1"), make_fault(PLAN, "drain", "p0s1")
    assert [met.text for met in conditions(PLAN, [crash], PATH)] == ["has crashed: no program, no tables"]
    assert [met.text for met in conditions(PLAN, [drain], PATH)] == ["is drained: NICs send nothing across it"]
    assert conditions(PLAN, [make_fault(PLAN, "switch-crash", "p0s0")], PATH) == []
    assert conditions(PLAN, [make_fault(PLAN, "link-down", "p0l0-p0s0")], PATH) == []


@pytest.mark.parametrize(
    ("ns", "words"),
    [(999, "999 ns"), (1000, "1 µs"), (999_999, "1000 µs"), (1_000_000, "1 ms"), (1_500_000_000, "1.5 s")],
)
def test_a_time_has_the_largest_unit_that_it_fills(ns: int, words: str) -> None:
    assert duration(ns) == words


@pytest.mark.parametrize(
    ("sizes", "row", "ratio"),
    [
        ((4, 2, 2, 2), "switches ", "51.200 = 256/5"),
        ((4, 2, 3, 2), "switches ", "64.000"),
        ((2, 1, 1, 2), "optics ", "0.500 = 1/2"),
        ((3, 7, 5, 11), "switches ", "5.984"),
    ],
)
def test_a_ratio_is_a_fraction_only_where_it_is_one_exactly(
    sizes: tuple[int, int, int, int], row: str, ratio: str
) -> None:
    """Planes, leaves, spines and hosts of a leaf, beside the 5,120 switches for 65,536 NICs that three tiers take."""
    shown_plan = show_plan(Plan("any", *sizes)).splitlines()
    assert [line.split("   ")[-1] for line in shown_plan if line.startswith(row)][-1] == ratio
