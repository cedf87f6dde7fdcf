"""EvPath selection: which EV the next packet takes. An algorithm is one file `select_*.py` and one line below."""

from __future__ import annotations

from random import Random
from typing import Protocol

from endpoint.mrc.paths.ev_set import EvPath, EvSet
from endpoint.mrc.paths.select_mrc import MrcSelection
from endpoint.mrc.paths.select_oblivious import ObliviousSelection
from endpoint.mrc.paths.select_single_path import SinglePathSelection
from endpoint.nic.config import ConfigError


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


def next_after_loss(selection: Selection, evs: EvSet, usable: int, blamed: EvPath | None, now_ns: int) -> EvPath | None:
    """The EV of a packet that is sent again; None: wait for a port.

    A packet that was taken for lost on `blamed` goes by another live plane, even if that plane's port is busy for now:
    all of its own plane may be dead, and the last EVs of a dead plane stay in rotation for some losses. That nobody
    sends there makes the dead plane's port the one that is always free.
    """
    others = 0
    if blamed is not None and selection.heeds_signals:
        for plane in evs.live:
            if plane is not blamed.plane and plane.port.paused_ns <= now_ns:
                others |= plane.bit
    if not others:
        return selection.next(usable)
    usable_others = usable & others
    if not usable_others:
        return None
    path = selection.next(usable_others)
    if path is None:  # only the turn of the plane to be avoided is left in this round
        selection.next(usable)
        path = selection.next(usable_others)
    return path
