"""What labs 5 and 6 are told of a packet that counts as lost and arrives after all."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from course.box.box import BoxLimits
from course.catalogue import find
from course.seams.log import Log, Seat
from course.seams.trial import NAME, Seam, installed
from course.student_folder import reference
from tests.course.open_box import OpenBox
from tests.helpers.transport.bench import Bench, Packet

MARKED = pytest.mark.parametrize("marked", [False, True])


@contextmanager
def one_lost(lab: Seam) -> Iterator[tuple[Bench, Log, Packet, int]]:
    """The reference of a lab has been told that a packet is lost, on this path; every other packet has arrived."""
    log, text = Log(), reference(find(lab), 1)
    with installed(Seat(lambda: OpenBox(text, f"{lab}.py", BoxLimits()), 12_000, log), lab):
        bench = Bench(selection=NAME, remote={"selection": "mrc"})
        bench.post(12)
        *others, late = bench.writes()  # the last of a write asks for an answer
        bench.to_b(*others)
        bench.to_a(*bench.answers())
        bench.wait(3)
        bench.post(4)
        bench.to_b(*bench.writes())
        bench.to_a(*bench.answers())
        (lost,) = (one.path for one in log.events if one.kind == "lost")
        yield bench, log, late, lost


def arrive(bench: Bench, packet: Packet, marked: bool) -> None:
    bench.to_b(packet.marked() if marked else packet)
    bench.to_a(*bench.answers())


def fates(log: Log, first: int) -> list[tuple[str, int, bool]]:
    return [(one.kind, one.path, one.marked) for one in log.events[first:]]


@MARKED
@pytest.mark.parametrize("lab", ["spray", "health"])
def test_a_late_packet_that_was_sent_again(lab: Seam, marked: bool) -> None:
    with one_lost(lab) as (bench, log, late, lost):
        first = len(log.events)
        (copy,) = bench.writes()
        again = log.events[-1].path
        assert again != lost
        arrive(bench, late, marked)
        ended = ("acked", again, False) if lab == "spray" else ("acked", lost, marked)
        assert fates(log, first) == [("sent", again, False), ended]
        arrive(bench, copy, True)  # a copy of what has arrived has no fate
        assert fates(log, first) == [("sent", again, False), ended]


@MARKED
def test_a_late_packet_that_was_not_sent_again_has_had_its_fate_in_lab_5(marked: bool) -> None:
    with one_lost("spray") as (bench, log, late, _):
        first = len(log.events)
        arrive(bench, late, marked)
        assert fates(log, first) == []


@MARKED
def test_a_late_packet_that_was_not_sent_again_speaks_for_its_path_in_lab_6(marked: bool) -> None:
    with one_lost("health") as (bench, log, late, lost):
        first = len(log.events)
        arrive(bench, late, marked)
        assert fates(log, first) == [("acked", lost, marked)]
