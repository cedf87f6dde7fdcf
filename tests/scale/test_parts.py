"""A job in parts: what is cut never met, and what the answer makes of the parts, against values worked by hand."""

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from scale.answer import most, quantiles, together
from scale.bar import Bar, bar_for, bars, conformal
from scale.carried import Carried
from scale.job import ALL_REDUCE, ALL_TO_ALL, RING, Job, ScaleError
from scale.part import Cut, thinned
from scenarios import TimedFault
from schedules import read
from topo import Host, Plan, load_plan
from topo.path import evs

PAPER = load_plan("paper")


def fabric(leaves: int, per_leaf: int, spines: int = 4, planes: int = 2) -> Plan:
    return replace(PAPER, planes=planes, leaves=leaves, spines=spines, hosts_per_leaf=per_leaf)


def fault(verb: str, target: str) -> TimedFault:
    return TimedFault(0.1, verb, target, None, phase="run")


def queues(plan: Plan, source: int, target: int) -> set[tuple[str, str]]:
    """Every port, as (node, next node), by which a packet from one host to another may leave."""
    ports = set()
    for _, path in evs(plan, Host(source), Host(target)):
        switches = [
            f"p{path.plane}{name}" for name in (f"l{plan.leaf_of(Host(source))}", f"l{plan.leaf_of(Host(target))}")
        ]
        middle = [switch.name for switch in path.switches or ()]
        way = [f"h{source}", *(middle or switches[:1]), f"h{target}"]
        ports |= set(pairwise(way))
    return ports


@pytest.mark.parametrize("kind", [ALL_TO_ALL, ALL_REDUCE])
def test_packets_of_two_blocks_share_no_queue(kind: str) -> None:
    plan, job = fabric(4, 2), Job(kind, 4096, 1, 2)
    whole = Cut(plan, job).whole
    blocks: dict[int, set[tuple[str, str]]] = {}
    for group in whole.groups:
        block = plan.leaf_of(Host(group[0])) // job.group
        for source, target in ((a, b) for a in group for b in group if a != b):
            blocks.setdefault(block, set()).update(queues(plan, source, target))
    assert len(blocks) == 2
    for first, second in combinations(blocks.values(), 2):
        assert first
        assert not first & second


@given(
    st.sampled_from([(ALL_TO_ALL, 4), (ALL_REDUCE, 2), (RING, 0)]),
    st.lists(
        st.one_of(
            st.builds("p{}l{}-p{}s{}".format, st.just(0), st.integers(0, 7), st.just(0), st.integers(0, 7)).map(
                lambda target: ("link-down", target)
            ),
            st.integers(0, 7).map(lambda spine: ("switch-crash", f"p1s{spine}")),
            st.integers(0, 511).map(lambda host: ("port-down", f"h{host}.p1")),
        ),
        max_size=4,
    ),
    st.sampled_from([1, 2, 4]),
)
def test_parts_make_up_the_whole_job_whatever_fails(
    kind: tuple[str, int], faults: list[tuple[str, str]], thin: int
) -> None:
    plan = fabric(8, 64, spines=8)
    job = Job(kind[0], 4096, steps=2, group=kind[1], rounds=3)
    parts = Cut(plan, job, tuple(fault(*one) for one in faults), 1 if kind[0] == RING else thin).parts()
    assert sum(sum(part.weights) * part.members for part in parts) == pytest.approx(512)
    for part in parts:
        assert sorted(rank for group in part.groups for rank in group) == list(range(part.plan.host_count))
    met = {mapped.verb for part in parts for mapped in part.faults}
    assert met == {verb for verb, _ in faults}


def test_a_fault_is_in_the_part_whose_packets_could_meet_it() -> None:
    plan, job = fabric(8, 64, spines=8), Job(ALL_TO_ALL, 4096, 1, 4)
    # Leaf 5 is in the second block, spine 6 in the last of four sets; host 300 is h44 of leaf 4: the third set of 16.
    parts = Cut(plan, job, (fault("link-down", "p0l5-p0s6"), fault("port-down", "h300.p1")), 4).parts()
    quiet, *hit = parts
    assert (quiet.members, len(hit)) == (6, 2)
    assert {part.title: [one.target for one in part.faults] for part in hit} == {
        "leaves 4 to 7, 3 of 4": ["h12.p1"],
        "leaves 4 to 7, 4 of 4": ["p0l1-p0s0"],
    }


def test_what_happens_under_one_leaf_reaches_the_next_in_a_ring() -> None:
    parts = Cut(fabric(8, 64), Job(RING, 4096, 2, rounds=4), (fault("port-down", "h130.p0"),)).parts()
    # h130 is the third host under leaf 2; leaf 3's ranks come behind those of leaf 2.
    assert [(part.title, part.members, [one.target for one in part.faults]) for part in parts] == [
        ("leaf 0", 6, []),
        ("leaf 2", 1, ["h34.p0"]),
        ("leaf 3", 1, ["h2.p0"]),
    ]


def test_only_windows_that_meet_a_fault_at_a_spine_have_all_spines() -> None:
    """192 paths over eight planes are 24 spines."""
    plan, job = fabric(8, 64, spines=64, planes=8), Job(RING, 4096, 1, rounds=4)
    spines = lambda *faults: [part.plan.spines for part in Cut(plan, job, faults).parts()]  # noqa: E731
    assert spines(fault("link-down", "p0l2-p0s40")) == [24, 64, 64]
    assert spines(fault("port-down", "h130.p0")) == [24, 24, 24]
    assert spines(fault("switch-crash", "p1s3")) == [64]


@pytest.mark.parametrize(("kind", "group"), [(RING, 0), (ALL_TO_ALL, 4), (ALL_REDUCE, 4)])
def test_the_program_of_a_part_has_every_message(kind: str, group: int, tmp_path: object) -> None:
    job, plan = Job(kind, 4096, steps=2, group=group, rounds=3), fabric(4, 8)
    file = tmp_path / "part.goal"  # type: ignore[operator]
    file.write_text("\n".join(job.goal(Cut(plan, job).whole.groups)))
    schedule = read(file)
    each = {RING: 3, ALL_TO_ALL: 3, ALL_REDUCE: 2 * 3}[kind]
    assert schedule.messages == 2 * each * 32
    assert schedule.bytes == schedule.messages * (1024 if kind == ALL_REDUCE else 4096)


def test_quantiles_count_weights() -> None:
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 8.0, 1.0])
    assert quantiles(values, weights, (0.5, 0.8, 0.85, 0.95)) == [1.0, 1.0, 2.0, 3.0]


def test_the_slowest_of_many_lies_beyond_the_sample() -> None:
    """Of an exponential distribution with mean 1, the largest of n is ln n on average (and Euler's 0.58 more)."""
    sample = np.random.default_rng(1).exponential(1.0, 100_000)
    assert most(sample, 1e9) == pytest.approx(np.log(1e9), rel=0.05)
    assert most(sample, 100_000) == sample.max()


def test_parts_are_weighed_by_their_members() -> None:
    quiet, hit = Cut(fabric(8, 8), Job(ALL_TO_ALL, 4096, 1, 4), (fault("link-down", "p0l0-p0s0"),)).parts()
    steps = lambda ns: np.full((1, 32), ns)  # noqa: E731
    quiet = replace(quiet, members=199)
    answer = together([quiet, hit], [Carried(0, steps(10.0), 100, 0), Carried(1, steps(50.0), 100, 7)])
    assert (answer.nics, answer.exact_nics, answer.packets, answer.resent) == (6400, 64, 20_000, 7)
    assert (answer.median_ns, answer.p99_ns, answer.slowest_ns) == (10.0, 10.0, 50.0)


def test_a_bar_is_the_conformal_quantile() -> None:
    """⌈0.95 · (19 + 1)⌉ = 19: the largest of nineteen; of eighteen there is none."""
    assert conformal([0.01 * n for n in range(19)]) == pytest.approx(0.18)
    assert conformal([-0.5, *[0.0] * 38]) == 0.0
    assert conformal([0.01] * 18) == float("inf")


BAR = Bar(ALL_TO_ALL, "none", "mrc", (4096, 65536), 32, 8, 1024, 20, 0.01, 0.04, 0.1)


def test_an_answer_without_a_measured_bar_is_refused() -> None:
    cut = Cut(PAPER, Job(ALL_TO_ALL, 65536, 1, 8), (), thinned(PAPER))
    assert cut.thin == 8
    assert bar_for(cut, "mrc", [BAR]) == BAR
    with pytest.raises(ScaleError, match=r"messages of 1000 bytes \(measured: 4096 to 65536\)"):
        bar_for(replace(cut, job=Job(ALL_TO_ALL, 1000, 1, 8)), "mrc", [BAR])
    with pytest.raises(ScaleError, match="no error bar was measured for all-to-all with loss and mrc"):
        bar_for(replace(cut, faults=(replace(fault("loss", "p0l0-p0s0"), value=5.0),)), "mrc", [BAR])
    with pytest.raises(ScaleError, match="no error bar was measured"):
        bar_for(replace(cut, plan=replace(PAPER, leaves=8, hosts_per_leaf=64)), "mrc", [replace(BAR, nics=1024)])
    with pytest.raises(ScaleError, match="thinned"):
        bar_for(replace(cut, thin=16), "mrc", [BAR])
    with pytest.raises(ScaleError, match="ports and delays"):
        bar_for(replace(cut, plan=PAPER.at_rate(400_000_000_000)), "mrc", [BAR])


def test_the_shipped_bars_can_be_read_and_say_what_was_measured() -> None:
    for one in bars():
        assert one.runs >= 19
        assert 0 < one.p99 < 1
    with pytest.raises(ScaleError, match=r"all-reduce with no fault and roce: .*\(measured: "):
        bar_for(Cut(PAPER, Job(ALL_REDUCE, 65536, 1, 8), (), 8), "roce")


@pytest.mark.parametrize(
    ("plan", "job", "thin", "said"),
    [
        (PAPER, Job(ALL_TO_ALL, 1, 1, 3), 1, "--group must divide the plan's 512 leaves"),
        (PAPER, Job(ALL_TO_ALL, 1, 1, 8), 3, "--thin must divide the plan's 256 hosts per leaf"),
        (PAPER, Job(RING, 1, 100, rounds=8), 1, "--steps times --rounds must be at most"),
        (load_plan("pods"), Job(RING, 1, 1, rounds=1), 1, "two even tiers"),
    ],
)
def test_a_job_without_parts_is_refused(plan: Plan, job: Job, thin: int, said: str) -> None:
    with pytest.raises(ScaleError, match=said):
        Cut(plan, job, (), thin)


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (("nosuch", 1), "must be one of ring, all-to-all, all-reduce"),
        ((ALL_TO_ALL, 0, 1, 8), "--bytes must be between 1 and"),
        ((ALL_TO_ALL, 1, 1, 1), "--group must be between 2 and"),
        ((RING, 1, 0), "--steps must be between 1 and"),
    ],
)
def test_numbers_of_a_job_are_checked(job: tuple[str, int], said: str) -> None:
    with pytest.raises(ScaleError, match=said):
        Job(*job)
