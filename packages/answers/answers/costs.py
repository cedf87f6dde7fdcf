"""The demands of each answer on switches: entries of tables, counted from the entries that a plan's switches get."""

from collections.abc import Sequence

from answers.answer import Answer
from controller.tables import tables
from running.transport_choice import transport
from topo import Plan, Switch

HEAD = ["answer", "entries of a leaf", "entries of a spine", "switches need", "NICs need", "state per queue pair"]


def entries(answer: Answer, plan: Plan, role: str) -> int:
    """The entries that the control plane writes into the first switch of a role, without faults."""
    choice = transport(answer.transport)
    built = choice.fabric(plan)
    switch = next(each for each in built.switches() if isinstance(each, Switch) and each.role == role)
    variant = choice.programs()
    more = [] if variant is None else list(variant.entries(built, switch, (), ()))
    return len(tables(built, switch, virtual_time=True)) + len(more)


def cost_rows(answers: Sequence[Answer], plan: Plan) -> list[list[str]]:
    """A line per answer under `HEAD`."""
    return [
        [
            answer.name,
            str(entries(answer, plan, "leaf")),
            str(entries(answer, plan, "spine")),
            ", ".join(answer.switches),
            ", ".join(answer.nics) or "nothing",
            answer.state,
        ]
        for answer in answers
    ]
