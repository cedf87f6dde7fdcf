"""The fabric as pure functions of one plan file, and its emulation in Mininet."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from topo.node import PLURALS, ROLES, Host, Node, Switch, SwitchProgram, SwitchRole, leaf, parse_node, spine, tier
    from topo.plan import Plan
    from topo.planfile import PlanError, load_plan, plan_document
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "PLURALS", "ROLES", "Host", "Node", "Plan", "PlanError", "Switch", "SwitchProgram", "SwitchRole", "address", "cli",
    "emulation", "fault", "graph", "leaf", "load_plan", "parse_node", "path", "pfc", "pictures", "plain_routes", "plan",
    "plan_document", "planfile", "profile", "show", "spine", "summaries", "tier", "topologies",
]  # fmt: skip
