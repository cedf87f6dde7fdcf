"""Which process has which hosts and switches: hosts stay with the switches at which they are plugged in."""

from __future__ import annotations

from dataclasses import dataclass

from topo import Host, Node, Plan
from topo.graph import links


@dataclass(frozen=True)
class Partition:
    """The rank of every node of a plan."""

    rank: dict[Node, int]

    @classmethod
    def of(cls, plan: Plan, count: int) -> Partition:
        """Groups of hosts in the order of their first hosts, as evenly as they go; the switches above take turns.

        ValueError when there are fewer groups than processes.
        """
        groups = host_groups(plan)
        if count > len(groups):
            raise ValueError(
                f"--processes {count}: hosts of one leaf stay together, and plan {plan.name} has {len(groups)} such"
                f" groups: take 1 to {len(groups)}"
            )
        rank: dict[Node, int] = {}
        done = 0
        for number, group in enumerate(groups):
            middle = done + sum(isinstance(node, Host) for node in group) / 2
            fair = int(middle * count / plan.host_count)
            own = max(min(fair, number), count - (len(groups) - number))  # every rank has a group
            rank.update(dict.fromkeys(group, min(own, count - 1)))
            done += sum(isinstance(node, Host) for node in group)
        above = [switch for switch in plan.switches() if switch not in rank]
        rank.update((switch, number % count) for number, switch in enumerate(above))
        return cls(rank)

    def elsewhere(self, plan: Plan, rank: int) -> dict[int, int]:
        """The switches of other ranks, by number, each with its part: its rank counted from 1."""
        switches = enumerate(plan.switches())
        return {number: self.rank[switch] + 1 for number, switch in switches if self.rank[switch] != rank}


def host_groups(plan: Plan) -> list[list[Node]]:
    """Hosts and the switches at which they are plugged in: both ends of a cable to a host are in one group."""
    leader: dict[Node, Node] = {host: host for host in plan.hosts()}

    def first(node: Node) -> Node:
        while leader[node] != node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    for link in links(plan):
        ends = (link.a.node, link.b.node)
        if any(isinstance(end, Host) for end in ends):
            host, leaf = ends if isinstance(ends[0], Host) else (ends[1], ends[0])
            leader.setdefault(leaf, leaf)
            leader[first(leaf)] = first(host)
    groups: dict[Node, list[Node]] = {}
    for node in leader:
        groups.setdefault(first(node), []).append(node)
    return sorted(groups.values(), key=lambda group: min(node.index for node in group if isinstance(node, Host)))
