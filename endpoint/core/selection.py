"""EvPath selection: which EV the next packet takes. An algorithm is one file `select_*.py` and one line below."""

from __future__ import annotations

from random import Random
from typing import Protocol

from endpoint.core.config import ConfigError
from endpoint.core.ev_set import EvPath, EvSet
from endpoint.core.select_mrc import MrcSelection
from endpoint.core.select_oblivious import ObliviousSelection
from endpoint.core.select_single_path import SinglePathSelection


class Selection(Protocol):
    """Made once per QP from its EVs and a generator."""

    heeds_signals: bool
    """Whether ECN, trims and losses change the states of EVs."""

    def __init__(self, evs: EvSet, rng: Random) -> None: ...

    def next(self, usable: int) -> EvPath | None:
        """The EV of the next packet. Bit n - 1 of `usable` says that port n may send now; None: wait for a port."""


SELECTIONS: dict[str, type[Selection]] = {
    "mrc": MrcSelection,
    "oblivious": ObliviousSelection,
    "single_path": SinglePathSelection,
}


def find_selection(name: str) -> type[Selection]:
    """The algorithm of that name. Raises `ConfigError`."""
    if name not in SELECTIONS:
        raise ConfigError(f"there is no path selection {name!r}; valid: {', '.join(SELECTIONS)}")
    return SELECTIONS[name]
