"""Placement: which host has which rank of a collective.

The clusters have nodes of as many GPUs as a leaf has hosts. "rail" is how such nodes are cabled: GPU i of every node is
under leaf i, and ranks count through the GPUs of a node first, so that each hop of a ring crosses a spine. "leaf" has
neighbouring ranks under the same leaf. "random" is drawn from a seed.
"""

from __future__ import annotations

from random import Random

from common.seeds import Purpose, derive
from topo import Plan

PLACEMENTS = ("rail", "leaf", "random")


def ranks(plan: Plan, placement: str, seed: int = 1) -> tuple[str, ...]:
    """The names of all hosts in the order of their ranks. Raises ValueError for a placement that there is not."""
    names = [str(host) for host in plan.hosts()]
    if placement == "leaf":
        return tuple(names)
    if placement == "random":
        Random(derive(seed, Purpose.RANKS)).shuffle(names)
        return tuple(names)
    if placement == "rail":
        under = plan.hosts_per_leaf
        return tuple(names[leaf * under + node] for node in range(under) for leaf in range(plan.leaves))
    raise ValueError(f"the placement must be one of {', '.join(PLACEMENTS)} (got {placement!r})")
