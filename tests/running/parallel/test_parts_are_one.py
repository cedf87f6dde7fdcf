"""A run in parts is the run in one process, byte for byte: journals and packet log, whatever is drawn."""

from collections import Counter
from pathlib import Path

import pytest

from running.parallel.world import Partition, SharedTime, host_groups
from tests.helpers.fuzzing import seeds
from tests.helpers.ranks_in_memory import differing, drawn_spec, even_spec, run_parts
from topo.graph import links
from topo.node import Host
from topo.planfile import parse_document


def test_frames_of_one_nanosecond_are_ordered_by_no_arrival(tmp_path: Path) -> None:
    assert differing(even_spec(), tmp_path) == []


def test_a_run_whose_hosts_take_their_time_is_the_same_in_parts(tmp_path: Path) -> None:
    """Messages between a program and its NIC are in no frame, so no part hears of another's."""
    assert differing(even_spec(post_ns=40_000_000, completion_ns=70_000_000), tmp_path) == []


def test_a_random_run_in_parts_is_the_run_in_one(tmp_path: Path) -> None:
    spec = drawn_spec(3)
    assert spec.faults()
    assert differing(spec, tmp_path) == []
    assert (tmp_path / "latest" / "packets.jsonl").stat().st_size > 1000


def test_what_one_part_raises_all_of_them_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turn = SharedTime._turn
    told: list[int] = []

    def broken(self: SharedTime, turn_end_ns: int, end_ns: int) -> Exception | None:
        if self.now_ns < 10**8:
            return turn(self, turn_end_ns, end_ns)
        told.append(self._ranks.rank)
        return OSError("a part is broken") if self._ranks.rank == 1 else turn(self, turn_end_ns, end_ns)

    monkeypatch.setattr(SharedTime, "_turn", broken)
    with pytest.raises(OSError, match="a part is broken"):
        run_parts(even_spec(), 3, tmp_path)
    assert sorted(told) == [0, 1, 2]
    (journal,) = tmp_path.glob("parts3/*/journal/runner.jsonl")
    assert "OSError: a part is broken" in journal.read_text()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 9])
def test_every_part_has_hosts_and_hosts_stay_with_their_leaves(count: int) -> None:
    plan = parse_document({"name": "wide", "fabric": {"planes": 2, "leaves": 9, "spines": 3, "hosts_per_leaf": 2}})
    rank = Partition.of(plan, count).rank
    assert set(rank) == {*plan.hosts(), *plan.switches()}
    hosts = Counter(rank[host] for host in plan.hosts())
    assert sorted(hosts) == list(range(count))
    assert max(hosts.values()) - min(hosts.values()) <= 2
    for link in links(plan):
        if isinstance(link.a.node, Host):
            assert rank[link.a.node] == rank[link.b.node]


def test_more_parts_than_groups_of_hosts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"--processes 5: .* has 4 such groups: take 1 to 4"):
        Partition.of(even_spec().plan, 5)


def test_the_commits_random_runs_in_parts_are_the_runs_in_one(tmp_path: Path) -> None:
    """In up to 16 parts: every fourth is on sixteen leaves."""

    def differs(seed: int) -> bool:
        spec = drawn_spec(seed, 16 if seed % 4 == 0 else None)
        groups = len(host_groups(spec.plan))
        return bool(differing(spec, tmp_path / str(seed), sorted({min(n, groups) for n in (2, 4, 8, 16)} - {1})))

    assert [seed for seed in seeds() if differs(seed)] == []
