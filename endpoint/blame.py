"""Which link is it? From the losses of self-addressed probes to a map of links, as a pure function.

A probe to the host's own T0 crosses the host's link twice; a probe to a T1 crosses that link and the T0–T1 link twice.
So losses of probes to the T0 are the host link's, and further losses of probes to a T1 are the T0–T1 link's. A loss
here is of round trips: a probe cannot tell the two directions apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

OK, LOSSY, DOWN, UNKNOWN = "ok", "lossy", "down", "unknown"

PROBES_MIN = 10  # fewer say nothing
RUN_DOWN = 8  # so many lost in a row mean a dead link: a link that loses a third does so once in 6,000
LOST_MIN = 3  # one or two are chance
LOSS_MIN = 0.01


@dataclass(frozen=True, slots=True)
class Probed:
    """The recent probes of one host through one port to one switch; the last `lost_run` of them were all lost."""

    target: str
    port: int
    is_leaf: bool
    sent: int
    lost: int
    lost_run: int

    @property
    def loss(self) -> float:
        """Share of the probes that did not come back."""
        return self.lost / self.sent if self.sent else 0.0


@dataclass(frozen=True, slots=True)
class LinkState:
    """What this host knows of the link between `a` and `b`; `state` is one of the names above."""

    a: str
    b: str
    state: str
    loss: float
    """Share of round trips that this link lost."""
    blame: str
    """A sentence for people that names the culprit; empty when there is none."""


def infer(host: str, ports_up: Mapping[int, bool], probed: Sequence[Probed]) -> list[LinkState]:
    """The links that this host's probes cross, in order of port. A port without a probe to its T0 has no links here."""
    links: list[LinkState] = []
    for leaf in probed:
        if not leaf.is_leaf:
            continue
        own = _host_link(host, leaf, ports_up.get(leaf.port, True))
        links.append(own)
        spines = [one for one in probed if one.port == leaf.port and not one.is_leaf]
        blind = own.state in (DOWN, UNKNOWN)
        links += [
            LinkState(leaf.target, spine.target, UNKNOWN, 0.0, "") if blind else _fabric_link(leaf, spine)
            for spine in spines
        ]
    return links


def merge(maps: Iterable[Sequence[LinkState]]) -> list[LinkState]:
    """One map from those of many hosts: the mean loss of each link, and a switch blamed when all its links are down."""
    seen: dict[tuple[str, str], list[LinkState]] = {}
    for links in maps:
        for link in links:
            seen.setdefault((link.a, link.b), []).append(link)
    merged = [_mean(views) for views in seen.values()]
    by_switch: dict[str, list[LinkState]] = {}
    for link in merged:
        for end in (link.a, link.b):
            by_switch.setdefault(end, []).append(link)
    dead = {
        node
        for node, links in by_switch.items()
        if len(links) > 1
        and all(link.state in (DOWN, UNKNOWN) for link in links)
        and any(_is_down(link) for link in links)
    }
    # Behind a dead T0 the state of its T1 links is unknown; the T0 is to blame, and so is a T1 that no T0 reaches.
    return [
        LinkState(link.a, link.b, link.state, link.loss, f"{' and '.join(ends)} passes nothing on any link")
        if _is_down(link) and (ends := sorted({link.a, link.b} & dead))
        else link
        for link in merged
    ]


def _host_link(host: str, leaf: Probed, up: bool) -> LinkState:
    if not up:
        return LinkState(host, leaf.target, DOWN, 1.0, f"{host} port {leaf.port} is down")
    if leaf.lost_run >= RUN_DOWN:
        text = f"{host}–{leaf.target} is up but passes nothing: {leaf.target} does not forward, or the link is dead"
        return LinkState(host, leaf.target, DOWN, 1.0, text)
    if leaf.sent < PROBES_MIN:
        return LinkState(host, leaf.target, UNKNOWN, 0.0, "")
    if leaf.lost >= LOST_MIN and leaf.loss >= LOSS_MIN:
        return LinkState(host, leaf.target, LOSSY, leaf.loss, f"{host}–{leaf.target} is losing {leaf.loss:.0%}")
    return LinkState(host, leaf.target, OK, leaf.loss, "")


def _fabric_link(leaf: Probed, spine: Probed) -> LinkState:
    name = f"{leaf.target}–{spine.target}"
    if spine.lost_run >= RUN_DOWN and leaf.loss < 0.5:
        return LinkState(leaf.target, spine.target, DOWN, 1.0, f"{name} passes nothing")
    if spine.sent < PROBES_MIN:
        return LinkState(leaf.target, spine.target, UNKNOWN, 0.0, "")
    # This link can lose only the probes that the host's link has let through.
    loss = max(0.0, 1 - (1 - spine.loss) / (1 - leaf.loss)) if leaf.loss < 1 else 0.0
    expected = spine.sent * leaf.loss
    beyond_chance = LOST_MIN + 2 * math.sqrt(expected * (1 - leaf.loss))
    if loss >= LOSS_MIN and spine.lost - expected >= beyond_chance:
        return LinkState(leaf.target, spine.target, LOSSY, loss, f"{name} is losing {loss:.0%}")
    return LinkState(leaf.target, spine.target, OK, loss, "")


def _mean(views: Sequence[LinkState]) -> LinkState:
    telling = [view for view in views if view.state != UNKNOWN]
    if not telling:
        return views[0]
    first = telling[0]
    if all(view.state == first.state for view in telling) and first.state != LOSSY:
        return first
    loss = sum(view.loss for view in telling) / len(telling)
    votes = sum(view.state in (LOSSY, DOWN) for view in telling)
    if votes * 2 <= len(telling):
        return LinkState(first.a, first.b, OK, loss, "")
    return LinkState(first.a, first.b, LOSSY, loss, f"{first.a}–{first.b} is losing {loss:.0%}")


def _is_down(link: LinkState) -> bool:
    return link.state == DOWN
