"""The questions of lab 1, drawn by the student's seed on a plan that the seed draws as well."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from common.seeds import Purpose, derive
from topo import Host, Plan, leaf, spine
from topo.address import nic_usid, switch_usid, usid_address
from topo.path import Path, hops, path_da, path_of_ev, self_probe, usid_list

BLOCKS = ("fcbb:bbbb::/32", "fcbb:a1::/32", "fc00:7::/32", "fdc0:ffee::/32")


@dataclass(frozen=True, slots=True)
class Question:
    """`asked` is put before the student; `usids` are those of an address that is right, () for other answers."""

    asked: str
    answer: str
    source: Host | None = None
    plane: int = 0
    usids: tuple[int, ...] = ()


def draw_plan(seed: int) -> Plan:
    """Three or four planes, leaves and spines: numbers of a size, so that every seed is as difficult."""
    rng = Random(derive(seed, Purpose.LESSON, "usids plan"))
    planes, leaves, spines = (rng.choice((3, 4)) for _ in range(3))
    block = ipaddress.IPv6Network(rng.choice(BLOCKS))
    return Plan("usids", planes, leaves, spines, rng.choice((2, 3)), usid_block=block)


def plan_text(plan: Plan) -> str:
    """A student's plan as a plan file, for `./lab topo draw`."""
    return (
        f'name = "{plan.name}"\n\n[fabric]\n'
        f"planes = {plan.planes}\nleaves = {plan.leaves}\nspines = {plan.spines}\n"
        f"hosts_per_leaf = {plan.hosts_per_leaf}\n"
        f'\n[srv6]\nusid_block = "{plan.usid_block}"\n'
    )


class Asker:
    """Draws the questions of one seed."""

    def __init__(self, seed: int) -> None:
        self.plan = draw_plan(seed)
        self.rng = Random(derive(seed, Purpose.LESSON, "usids questions"))

    def path(self, *, local: bool = False) -> Path:
        """A path between two hosts, of one leaf or of two; never leaf 0, spine 0 or plane 0 everywhere."""
        plan, rng = self.plan, self.rng
        hosts = list(plan.hosts())
        while True:
            source, destination = rng.sample(hosts, 2)
            if (plan.leaf_of(source) == plan.leaf_of(destination)) is local:
                via = None if local else rng.randrange(1, plan.spines)
                low = 0xFFFF if via is None else 0xC000 + via
                return path_of_ev(plan, source, destination, rng.randrange(1, plan.planes) << 16 | low)

    def path_text(self, path: Path) -> str:
        via = "under one leaf" if path.spine is None else f"spine {path.spine}"
        return f"{path.source} to {path.destination}, plane {path.plane}, {via}"

    def address(self, path: Path) -> Question:
        usids = tuple(usid_list(self.plan, path))
        answer = str(path_da(self.plan, path))
        return Question(
            f"{self.path_text(path)}: the address that {path.source} writes", answer, path.source, path.plane, usids
        )

    def way(self) -> Question:
        return self.address(self.path())

    def neighbours(self) -> Question:
        return self.address(self.path(local=True))

    def shifted(self) -> Question:
        path = self.path()
        at = self.rng.randrange(2)
        hop = hops(self.plan, path)[at]
        usids = tuple(usid_list(self.plan, path)[at + 1 :])
        asked = f"{self.path_text(path)}: the address with which the packet leaves {hop.switch}"
        return Question(asked, str(hop.da_out), usids=usids)

    def arrival(self) -> Question:
        path = self.path()
        asked = f"{path.source} sends to {path_da(self.plan, path)} in plane {path.plane}: the host that it reaches"
        return Question(asked, path.destination.name)

    def dead_end(self) -> Question:
        path = self.path()
        usids = usid_list(self.plan, path)
        other = spine((path.plane + 1) % self.plan.planes, path.spine or 0)
        usids[1] = switch_usid(other)  # a spine of another plane: no neighbour of the first leaf
        da = usid_address(self.plan, usids)
        asked = f"{path.source} sends to {da} in plane {path.plane}: the switch that drops the packet"
        return Question(asked, leaf(path.plane, self.plan.leaf_of(path.source)).name)

    def there_and_back(self) -> Question:
        path = self.path()
        target = spine(path.plane, path.spine or 0)
        _, da = self_probe(self.plan, path.source, target)
        own = switch_usid(leaf(path.plane, self.plan.leaf_of(path.source)))
        usids = (own, switch_usid(target), own, nic_usid(self.plan.downlink_of(path.source)))
        asked = f"{path.source} probes {target}: the address that takes a packet there and back"
        return Question(asked, str(da), path.source, path.plane, usids)

    def entropy(self) -> Question:
        path = self.path()
        return Question(f"{self.path_text(path)}: its EV", f"{path.ev:#010x}")

    def hop_limit(self) -> Question:
        path = self.path(local=self.rng.random() < 0.5)
        crossed = len(hops(self.plan, path))
        sent = self.rng.randrange(32, 200)
        asked = f"{self.path_text(path)}: the hop limit on arrival, sent with {sent}"
        return Question(asked, str(sent - crossed))


ASKED: dict[str, tuple[str, Callable[[Asker], Question]]] = {
    "path-1": ("the address of a path across a spine", Asker.way),
    "path-2": ("the address of another path", Asker.way),
    "local": ("the address of a path under one leaf", Asker.neighbours),
    "shift": ("the address after a hop", Asker.shifted),
    "arrival": ("the host that an address reaches", Asker.arrival),
    "dead-end": ("the switch that drops a packet", Asker.dead_end),
    "probe": ("a probe that comes back", Asker.there_and_back),
    "ev": ("the EV of a path", Asker.entropy),
    "hop-limit": ("the hop limit on arrival", Asker.hop_limit),
}
"""By the name of the answer: the test's title, and how its question is drawn."""


def questions(seed: int) -> tuple[Plan, dict[str, Question]]:
    """The plan and all questions of a seed."""
    asker = Asker(seed)
    return asker.plan, {name: draw(asker) for name, (_, draw) in ASKED.items()}
