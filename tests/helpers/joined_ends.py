"""Programs on the two NICs of a rig, one on each, whose queue pairs are connected."""

from typing import Any

from benchmarks.rig.uverbs_rig import End, Rig


def joined(made: Rig, *attributes: dict[str, Any]) -> list[End]:
    ends = [End(name, **given) for name, given in zip(made.names, attributes or ({}, {}), strict=True)]
    for one, other in (ends, ends[::-1]):
        one.qp.connect(other.qp.info())
    return ends
