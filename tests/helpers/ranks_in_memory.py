"""The processes of a run as threads, joined in memory as MPI joins processes: every object is pickled on its way."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from running.directory import RunDirectory
from running.parallel.communicator import Ranks
from running.parallel.runs import Teller, carry_out
from running.parallel.world import host_groups
from running.runner import launch, prepare
from running.spec import RunSpec
from running.transport_choice import transport
from scenarios.scenario import Workload
from studies.hunting.case import Case
from studies.hunting.draw import draw
from tests.helpers.waiting import at_once
from topo.topologies import LeafSpine

COUNTS = (2, 4)
ROCE_EVERY = 5


class AbortedError(RuntimeError):
    """Another thread has ended the run."""


@dataclass
class Meeting:
    """Where threads meet for one call after the other."""

    count: int
    slots: list[bytes] = field(default_factory=list)
    at_end: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.slots = [b""] * self.count
        self.barrier = threading.Barrier(self.count)

    def swap(self, rank: int, what: Any) -> list[Any]:
        self.slots[rank] = pickle.dumps(what)
        try:
            self.barrier.wait(120)
            heard = [pickle.loads(slot) for slot in self.slots]
            self.barrier.wait(120)
        except threading.BrokenBarrierError:
            raise AbortedError from None
        return heard


class MemoryCommunicator:
    """`mpi4py.MPI.Intracomm` of one thread."""

    def __init__(self, meeting: Meeting, rank: int) -> None:
        self._meeting, self._rank = meeting, rank

    def Get_rank(self) -> int:  # noqa: N802
        return self._rank

    def Get_size(self) -> int:  # noqa: N802
        return self._meeting.count

    def Dup(self) -> MemoryCommunicator:  # noqa: N802
        return self

    def Ibarrier(self) -> MemoryCommunicator:  # noqa: N802
        with self._meeting.lock:
            self._meeting.at_end += 1
            self._goal = -(-self._meeting.at_end // self._meeting.count) * self._meeting.count
        return self

    def Test(self) -> bool:  # noqa: N802
        return self._meeting.at_end >= self._goal

    def Abort(self, errorcode: int) -> None:  # noqa: N802
        self._meeting.barrier.abort()

    def alltoall(self, sendobj: list[Any]) -> list[Any]:
        return [row[self._rank] for row in self._meeting.swap(self._rank, sendobj)]

    def allgather(self, sendobj: Any) -> list[Any]:
        return self._meeting.swap(self._rank, sendobj)

    def gather(self, sendobj: Any, root: int) -> list[Any] | None:
        heard = self._meeting.swap(self._rank, sendobj)
        return heard if self._rank == root else None

    def bcast(self, obj: Any, root: int) -> Any:
        return self._meeting.swap(self._rank, obj)[root]


def run_whole(spec: RunSpec, folder: Path) -> Path:
    """The folder of a run in one process."""
    directory = RunDirectory.create(folder, "whole", spec.seed)
    launch(prepare(spec).runner(directory))
    return directory.path


def run_parts(spec: RunSpec, count: int, folder: Path) -> Path:
    """The folder of the run in so many parts, or as many as there are groups of hosts. Raises what they raised."""
    directory = RunDirectory.create(folder, f"parts{count}", spec.seed)
    meeting = Meeting(min(count, len(host_groups(spec.plan))))
    raised: list[BaseException] = []

    def part(rank: int) -> None:
        scratch = folder / f"scratch{count}-{rank}"
        scratch.mkdir()
        ranks = Ranks(cast(Any, MemoryCommunicator(meeting, rank)))
        try:
            carry_out(prepare(spec), directory, scratch, ranks, Silent(ranks))
        except BaseException as error:
            raised.append(error)

    at_once([lambda rank=rank: part(rank) for rank in range(meeting.count)], None)
    if raised:
        raise raised[0]
    return directory.path


class Silent(Teller):
    """Tells nothing: the test's own output is read by people."""

    def _write(self, **fields: Any) -> None:
        pass


def contents(run: Path) -> dict[str, bytes]:
    """The journals and the packet log of a run, without what tells one process of the machine from another."""
    files = {path.name: path.read_bytes() for path in [*run.glob("journal/*.jsonl"), *run.glob("packets.jsonl")]}
    first, _, rest = files["runner.jsonl"].partition(b"\n")
    line = {name: value for name, value in json.loads(first).items() if name not in ("pid", "realtime_ns")}
    return {**files, "runner.jsonl": json.dumps(line).encode() + b"\n" + rest}


def even_spec(**options: Any) -> RunSpec:
    """All hosts of an even fabric send to all at once, so frames of many cables reach a spine at one nanosecond.

    `options` are further ones of the workload.
    """
    fabric = {"planes": 2, "leaves": 4, "spines": 2, "hosts_per_leaf": 2}
    load = Workload("all_to_all", {"size": 4096, "rounds": 0, "qps": 1, **options}, name="load0")
    return Case(5, fabric, (load,), (), reference_s=0.2, faults_s=0.2, after_s=0.2).spec()


def drawn_spec(seed: int, leaves: int | None = None) -> RunSpec:
    """A random fabric with random loads, faults and settings; a stretch of it is recorded packet by packet.

    With `leaves` a fabric of two even tiers has so many, if there are fewer of its own, so that it has as many parts.
    """
    case = draw(seed)
    if leaves is not None and case.topology == LeafSpine.NAME:
        case = replace(case, fabric={**case.fabric, "leaves": max(leaves, case.fabric["leaves"])})
    spec = case.spec()
    choices = replace(spec.choices, record_packets_s=(0.6, 0.8))
    if seed % ROCE_EVERY == 0 and not case.parts:  # RoCE takes one plane for all, and those of a list may differ
        choices = replace(choices, transport=transport("roce", spec.scenario.settings), setting_changes={})
    elif seed % 2:
        choices = replace(choices, transport=replace(choices.transport, payload="counted"))
    return replace(spec, choices=choices)


def differing(spec: RunSpec, folder: Path, counts: Sequence[int] = COUNTS) -> list[str]:
    """The files of the run that are not the same for each number of parts."""
    whole = contents(run_whole(spec, folder))
    found: list[str] = []
    for count in counts:
        parts = contents(run_parts(spec, count, folder))
        assert parts.keys() == whole.keys()
        found += [f"{name} in {count} parts" for name in whole if parts[name] != whole[name]]
    assert len(whole["switches.jsonl"]) > 0
    return found
