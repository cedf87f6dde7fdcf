"""The entries of a switch as the plan has them, and the wrong ones that an incident gives it."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from controller import DirectControl, Entity, TableEntry, compiled_pipelines
from controller.tables import tables
from operations.incident.draw import Hidden
from p4c.entries import Lpm
from running.view import entry_rows
from switch.reference import ReferenceEngine
from topo import Plan, Switch
from topo.address import switch_usid, usid_prefix
from topo.graph import port_towards

TRIMS, DROPS, LIMITS, ROUTES = "trim_beyond", "drop_beyond", "queue_limit", "ipv6_route"


def changed(plan: Plan, fault: Hidden, entities: Collection[Entity]) -> list[Entity]:
    """The plan's entries of a switch with what a hidden fault makes of them."""
    entries: list[Entity] = []
    for entity in entities:
        if isinstance(entity, TableEntry):
            made = _changed_entry(plan, fault, entity)
            entries += [] if made is None else [made]
        else:
            entries.append(entity)
    assert entries != list(entities), f"{fault.kind} changed nothing in {fault.component}"
    return entries


def _changed_entry(plan: Plan, fault: Hidden, entry: TableEntry) -> TableEntry | None:
    if fault.kind in ("missing-entry", "wrong-entry"):
        target = usid_prefix(plan, switch_usid(plan.switch_node(fault.names["towards"])))
        wanted = Lpm(int(target.network_address), target.prefixlen)
        if entry.table != ROUTES or entry.match[0][1] != wanted:
            return entry
        if fault.kind == "missing-entry":
            return None
        here, instead = plan.switch_node(fault.component), plan.switch_node(fault.names["instead"])
        return replace(entry, args=(port_towards(plan, here, instead),))
    if entry.table != LIMITS or entry.action != TRIMS:
        return entry
    if fault.kind == "no-trimming":
        return replace(entry, action=DROPS)
    return replace(entry, args=(int(fault.numbers["packets"]), *entry.args[1:]))


def planned(plan: Plan, switch: Switch, *, virtual_time: bool = True) -> tuple[tuple[str, str, str], ...]:
    """The plan's entries of a switch, as (table, match, action)."""
    control = DirectControl(ReferenceEngine(seed=0), compiled_pipelines()[switch.program])
    control.install(tables(plan, switch, virtual_time=virtual_time))
    return tuple((row["table"], row["match"], row["action"]) for row in entry_rows(control.store))


def differing(
    plan: Plan, switch: Switch, held: Collection[dict[str, str]], *, virtual_time: bool = True
) -> Iterator[tuple[str, str, str, str]]:
    """(table, match, the plan's action, the held action) where they differ; "" where there is none."""
    want = {(table, match): action for table, match, action in planned(plan, switch, virtual_time=virtual_time)}
    have = {(row["table"], row["match"]): row["action"] for row in held}
    for key in sorted(want.keys() | have.keys()):
        if want.get(key) != have.get(key):
            yield (*key, want.get(key, ""), have.get(key, ""))
