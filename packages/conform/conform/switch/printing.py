"""The static tables that a switch under test must hold: in words, as commands of Linux, as entries of P4Runtime.

The first two are files beside this one, which a test holds against the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from conform.switch.bench import NODE, fabric
from controller import compiled_pipelines, words
from controller.tables import tables


def file(form: str) -> Path:
    """Where the tables are in this form, with PORT1 to PORT4 in place of interfaces."""
    return Path(__file__).with_name(f"tables-{form}.txt")


def printed(form: str, interfaces: Sequence[str], rate_bps: int = 0) -> str:
    """The tables for a switch whose ports have these names and this rate."""
    if form == "p4runtime":
        plan = fabric(rate_bps)
        node = plan.switch_node(NODE)
        p4info = compiled_pipelines()[node.program].p4info
        return "".join(f"{words.key(p4info, each)} → {words.value(p4info, each)}\n" for each in tables(plan, node))
    text = file(form).read_text()
    for number, name in enumerate(interfaces, 1):
        text = text.replace(f"PORT{number}", name)
    return text
