"""Programs on the two NICs of a rig, one on each, whose queue pairs are connected."""

from typing import Any

from benchmarks.rig.uverbs_rig import End, Rig
from mrclab import CQ, QP, WC


def joined(made: Rig, *attributes: dict[str, Any]) -> list[End]:
    ends = [End(name, **given) for name, given in zip(made.names, attributes or ({}, {}), strict=True)]
    connect(ends[0].qp, ends[1].qp)
    return ends


def connect(one: QP, other: QP) -> None:
    one.connect(other.info())
    other.connect(one.info())


def drain(cq: CQ, count: int) -> list[WC]:
    """So many completions, when they are there."""
    arrived: list[WC] = []
    while len(arrived) < count:
        completions = cq.wait(20, 256)
        assert completions
        arrived += completions
    assert len(arrived) == count
    return arrived
