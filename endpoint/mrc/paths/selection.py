"""Path selection: which EV the next packet takes.

An algorithm is one file, and one line of names (`endpoint.mrc.algorithms`).
"""

from random import Random
from typing import ClassVar

from mypy_extensions import mypyc_attr

from endpoint.mrc.parameter import Parameter, Values
from endpoint.mrc.paths.ev_set import EvPath, EvSet
from endpoint.mrc.paths.signals import Signals


@mypyc_attr(allow_interpreted_subclasses=True)
class Selection(Signals):
    """One queue pair's choice of paths, made once from its EVs, a generator and the values of its parameters.

    `evs.live` are the planes in use, `plane.active` the EVs in rotation of each; both change as EVs come and go.
    """

    heeds_signals: ClassVar[bool] = True
    """Whether ECN marks, trims and losses change the states of EVs. False: every EV stays in rotation."""
    parameters: ClassVar[tuple[Parameter, ...]] = ()

    def __init__(self, evs: EvSet, rng: Random, values: Values) -> None:
        self.evs = evs
        self.heeds: bool = self.heeds_signals
        self.wanted_probes: list[EvPath] = []
        """EVs to probe: append to the list. Reliability probes leave with the next acknowledgement, eight at a time."""

    def next(self, usable: int) -> EvPath | None:
        """The EV of the next packet. Bit n - 1 of `usable` says that port n may send now; None: wait for a port."""
        raise NotImplementedError


def port_may_come(evs: EvSet, usable: int, ports_open: int) -> bool:
    """Whether a packet without a port need only wait for one. False: no port that the congestion control has open can
    come, so the next acknowledgement, port or timeout has to change something."""
    return ports_open == -1 or bool((usable | evs.wanted_ports) & ports_open)


def next_after_loss(
    selection: Selection, evs: EvSet, usable: int, blamed: EvPath | None, now_ns: int, ports_open: int = -1
) -> EvPath | None:
    """The EV of a packet that is sent again, by one of the ports that the congestion control has open; None: wait for a
    port.

    A packet that was taken for lost on `blamed` goes by another live plane, even if that plane's port is busy for now:
    its whole plane may be dead, and the last EVs of a dead plane stay in rotation for some losses. Since no
    packets go there, the dead plane's port is the one that is always free.
    """
    others = 0
    usable &= ports_open
    if blamed is not None and selection.heeds and (evs.leaves_plane or blamed.link_down):
        for plane in evs.live:
            if plane is not blamed.plane and plane.port.paused_ns <= now_ns:
                others |= plane.bit & ports_open
    if not others:
        return selection.next(usable) or next_turn(selection, evs, usable, ports_open)
    usable_others = usable & others
    if not usable_others:
        return None
    if ports_open == -1:
        return _next_by(selection, usable_others, usable)
    return _next_by(selection, usable_others, usable | ~ports_open, len(evs.live))


def next_turn(selection: Selection, evs: EvSet, usable: int, ports_open: int) -> EvPath | None:
    """The next EV by an open port, after planes whose ports the congestion control has closed have lost their turns.

    To be asked where the selection has named none: one that gives its planes equal shares waits for closed ports too.
    """
    if ports_open == -1 or not usable & ports_open:
        return None
    return _next_by(selection, usable & ports_open, ~ports_open, len(evs.live))


def next_pair(selection: Selection, evs: EvSet, missing: EvPath | None = None) -> list[EvPath]:
    """EVs for two probes, of different planes where there are several live ones: one plane may be dead, and it is more
    likely that of the packet that is `missing`, which comes second."""
    first = selection.next(-1)
    if first is None:
        return []
    others = sum(plane.bit for plane in evs.live if plane is not first.plane)
    second = _next_by(selection, others, -1) if others else selection.next(-1)
    if second is None or second is first:
        return [first]
    return [second, first] if missing is not None and missing.plane is first.plane else [first, second]


def _next_by(selection: Selection, ports: int, avoided: int, turns: int = 1) -> EvPath | None:
    """The next EV by one of `ports`. Where only planes to be avoided are left in a round, up to `turns` of those with a
    port of `avoided` lose their turn."""
    path = selection.next(ports)
    while path is None and turns:
        selection.next(avoided)
        path = selection.next(ports)
        turns -= 1
    return path
