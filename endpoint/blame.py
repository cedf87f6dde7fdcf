"""Which link is it? From the losses of self-addressed probes to a map of links, as a pure function.

A probe to the host's own T0 crosses the host's link twice; a probe to a T1 crosses that link and the T0–T1 link twice.
So losses of probes to the T0 are the host link's, and further losses of probes to a T1 are the T0–T1 link's. On three
tiers a probe to a T2 crosses the T1–T2 link besides. A loss here is of round trips: a probe cannot tell the two
directions apart.

A host sees one link of most T2s. That a T2 is dead, and not this link, only hosts of several pods know together.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["OK", "UNKNOWN", "LinkState", "merge"]

OK, LOSSY, DOWN, UNKNOWN = "ok", "lossy", "down", "unknown"

PROBES_MIN = 10  # fewer say nothing
RUN_DOWN = 8  # so many lost in a row mean a dead link: a link that loses a third does so once in 6,000
LOST_MIN = 3  # one or two are chance
LOSS_MIN = 0.01
FURTHER_MIN = 12.0  # of `further`: by chance once in 4,000
RUN_CHANCE = 1e-5  # of a run of losses before a link is called dead that is behind a lossy one


@dataclass(frozen=True, slots=True)
class Probed:
    """The recent probes of one host through one port to one switch; the last `lost_run` of them were all lost.

    `is_leaf` is said of the host's own leaf. `behind` is the switch between that leaf and the target, if there is one.
    """

    target: str
    port: int
    is_leaf: bool
    sent: int
    lost: int
    lost_run: int
    behind: str = ""

    @property
    def loss(self) -> float:
        """Share of the probes that did not come back."""
        return self.lost / self.sent if self.sent else 0.0


@dataclass(frozen=True, slots=True)
class LinkState:
    """This host's knowledge of the link between `a` and `b`; `state` is one of the names above."""

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
        others = [path for path in probed if path.port == leaf.port and not path.is_leaf]
        near = {spine.target: (spine, _link_behind(own, leaf, spine)) for spine in others if not spine.behind}
        links += [link for _, link in near.values()]
        for core in others:
            if core.behind in near:
                spine, link = near[core.behind]
                links.append(_link_behind(link, spine, core))
    return links


def _link_behind(before: LinkState, nearer: Probed, probed: Probed) -> LinkState:
    """The link from one switch to the next, of which nothing is known while the link before it passes nothing."""
    ends, name = (nearer.target, probed.target), f"{nearer.target}–{probed.target}"
    if before.state in (DOWN, UNKNOWN):
        return LinkState(*ends, UNKNOWN, 0.0, "")
    text = f"{name} passes nothing"
    if probed.behind:  # to a core; links before it may be lossy as well, so chance has more to say here
        chance = (nearer.lost + 2) / (nearer.sent + 4)  # no less than what one may expect of so many probes
        dead = chance**probed.lost_run <= RUN_CHANCE and nearer.lost_run < RUN_DOWN // 2
        text += f": the link is dead, or {probed.target} does not forward"
        loses = further(nearer, probed) >= FURTHER_MIN
    else:
        dead, expected = nearer.loss < 0.5, probed.sent * nearer.loss
        loses = probed.lost - expected >= LOST_MIN + 2 * math.sqrt(expected * (1 - nearer.loss))
    if dead and probed.lost_run >= RUN_DOWN:
        return LinkState(*ends, DOWN, 1.0, text)
    if probed.sent < PROBES_MIN:
        return LinkState(*ends, UNKNOWN, 0.0, "")
    # This link can lose only the probes that the links before it have let through.
    loss = max(0.0, 1 - (1 - probed.loss) / (1 - nearer.loss)) if nearer.loss < 1 else 0.0
    if loses and loss >= LOSS_MIN:
        return LinkState(*ends, LOSSY, loss, f"{name} is losing {loss:.0%}")
    return LinkState(*ends, OK, loss, "")


def merge(maps: Iterable[Sequence[LinkState]]) -> list[LinkState]:
    """One map from those of many hosts: the mean loss of each link, and a switch blamed when all its links are down."""
    seen: dict[frozenset[str], list[LinkState]] = {}  # a link between two leaves is probed from both ends
    for links in maps:
        for link in links:
            seen.setdefault(frozenset((link.a, link.b)), []).append(link)
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
        and any(link.state == DOWN for link in links)
    }
    # Behind a dead T0 the state of its T1 links is unknown; the T0 is to blame, and so is a T1 that no T0 reaches.
    return [
        LinkState(link.a, link.b, link.state, link.loss, f"{' and '.join(ends)} passes nothing on any link")
        if link.state == DOWN and (ends := sorted({link.a, link.b} & dead))
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


def further(nearer: Probed, probed: Probed) -> float:
    """How surely probes lose more than those that turn back one switch before: twice the log-likelihood ratio of two
    rates against one (the G-test of a 2 by 2 table). 0 where they lose no more.
    """
    if not nearer.sent or probed.loss <= nearer.loss:
        return 0.0
    sent, lost = nearer.sent + probed.sent, nearer.lost + probed.lost
    cells = 0.0
    for segment in (nearer, probed):
        for seen, share in ((segment.lost, lost / sent), (segment.sent - segment.lost, 1 - lost / sent)):
            if seen:
                cells += seen * math.log(seen / (segment.sent * share))
    return 2 * cells


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
