"""The asking side: starts the process that keeps an incident, and finds it again by its folder."""

import secrets
from pathlib import Path
from typing import Any

from common.plain_file import followed
from operations.incident.draw import draw
from operations.incident.session import SCENARIO, World
from running import RunDirectory
from running.view import KeeperGoneError, kept
from topo import Plan, plan_document
from topo.emulation import LabError, state

TICKETS = 1_000_000


class NoIncidentError(RuntimeError):
    """No incident is under way."""


def start(root: Path, seed: int, level: int, world: World = "simulated", plan: Plan | None = None) -> RunDirectory:
    """Build the lab of an incident, in a process that stays. ValueError for a seed, level, plan or folder that cannot
    be."""
    draw(seed, level, plan)
    # The folder's number is not the seed, which would give everything away.
    directory = RunDirectory.create(followed(root), SCENARIO, secrets.randbelow(TICKETS))
    try:
        asked = {"seed": seed, "level": level, "world": world, "plan": plan and plan_document(plan)}
        kept.start("operations.incident.server", directory.path, asked)
    except RuntimeError as error:
        raise RuntimeError(f"the incident did not begin: {error}") from None
    return directory


def newest(root: Path) -> Path:
    """The folder of the newest incident under way that is this user's, or root's. NoIncidentError when there is none.

    Folders of other users in `root` are passed over.
    """
    ours, passed = kept.folders(root / SCENARIO)
    if not ours:
        others = f" (passed over, because other users own them: {', '.join(map(str, passed))})" if passed else ""
        raise NoIncidentError(f"no incident is under way in {root}{others}: ./lab incident starts one")
    return ours[-1]


def namespace_of(node: str, answered: str) -> str:
    """The network namespace that the other side named, if it is the one of this node in a running incident's lab.

    The asking process may be root and enters it, so the records of labs decide, not the answer. ValueError otherwise.
    """
    for name, record in state.records().items():
        if isinstance(record, LabError) or record.run != SCENARIO or answered not in record.namespaces:
            continue
        if name.netns(record.plan.node(node)) == answered:
            return answered
    raise ValueError(f"the incident must name the network namespace of {node} in its lab (it named {answered!r})")


def ask(folder: Path, op: str, **arguments: Any) -> dict[str, Any]:
    """One request to the process of an incident. ControlError with its complaint; NoIncidentError if it has ended."""
    try:
        reply = kept.ask(folder, op, **arguments)
    except KeeperGoneError as error:
        raise NoIncidentError(
            f"the incident in {folder} is over, or its process was killed ({error}): ./lab incident starts another one"
        ) from None
    assert isinstance(reply, dict)
    return reply
