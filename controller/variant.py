"""A variant of the P4 programs: a package's own, in place of those in `p4/`, and the entries that they take."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Protocol

from controller.entries import Entity
from topo import Plan, Switch


class ProgramVariant(Protocol):
    """`programs` is a folder with `leaf.p4` and `spine.p4`, which have all tables of those in `p4/`."""

    programs: Path

    def entries(
        self, plan: Plan, switch: Switch, down: Collection[int], dead_links: Collection[tuple[str, str]]
    ) -> Iterable[Entity]:
        """The entries beside the plan's, which the switch's own agent keeps: `down` are its ports without a link, and
        `dead_links` the links, as pairs of switches, that routing has found dead."""
