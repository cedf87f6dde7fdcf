"""Push, verify and reconverge a fabric: every switch brought to, or compared with, what the plan says.

Afterwards no stream stays open and nothing is watched. A second push finds nothing to write.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from common.journal import Journal
from common.records import Frozen
from controller import items, words
from controller.client import (
    DELETE,
    INSERT,
    MODIFY,
    Address,
    ClientError,
    GrpcChannels,
    P4RuntimeClient,
    UnreachableError,
)
from controller.entries import DefaultEntry, Entity
from controller.items import Changes, Item
from controller.pipelines import PipelineConfig, Pipelines, compiled_pipelines
from controller.tables import DeadLinks, tables
from switch.p4rt import P4Info, P4RuntimeError
from switch.p4rt import p4runtime_pb2 as p4rt
from topo import Plan, Switch

__all__ = ["push"]

WORKERS = 8
Progress = Callable[[str, int, int], None]
"""Called with a switch's name, how many are done, and how many there are."""


class Difference(Frozen):
    """One way in which a switch is not as planned.

    `kind`: missing, unexpected, different (an entry); pipeline (another one is loaded, or none); program (the plan's
    entries do not fit the P4 program); refused, unreachable (the switch).
    """

    switch: str
    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.switch}: {self.kind}: {self.detail}"


class Report(Frozen):
    """`written` counts updates (a pipeline counts as one); `entries` those that the plan wants."""

    switches: int
    entries: int
    written: int
    differences: tuple[Difference, ...]
    elapsed_ns: int

    @property
    def ok(self) -> bool:
        """Whether every switch is as planned."""
        return not self.differences


class _Result(Frozen):
    entries: int = 0
    written: int = 0
    differences: tuple[Difference, ...] = ()


def push(
    plan: Plan,
    addresses: Mapping[str, Address],
    *,
    pipelines: Pipelines | None = None,
    dead_links: DeadLinks = (),
    journal: Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Load pipelines and write what is missing or wrong, on the switches in `addresses`; then read back and compare.

    Without `pipelines` the programs of p4/ are compiled. A switch that cannot be reached, or that refuses, is a
    difference; the others are provisioned all the same.
    """

    def push_switch(client: P4RuntimeClient, switch: Switch, pipeline: PipelineConfig) -> _Result:
        wanted = _wanted(plan, switch, pipeline.p4info, dead_links)
        with client.as_primary():
            return _push_one(client, pipeline, wanted)

    return _each(plan, addresses, push_switch, "push", pipelines, journal, progress)


def verify(
    plan: Plan,
    addresses: Mapping[str, Address],
    *,
    pipelines: Pipelines | None = None,
    journal: Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Read everything back and compare; changes nothing and needs no session."""

    def verify_switch(client: P4RuntimeClient, switch: Switch, pipeline: PipelineConfig) -> _Result:
        wanted = _wanted(plan, switch, pipeline.p4info)
        if client.cookie() != pipeline.cookie:
            return _Result(len(wanted), 0, (_wrong_pipeline(client, pipeline),))
        changes = items.compare(pipeline.p4info, wanted, client.read(_filters(pipeline.p4info)))
        return _Result(len(wanted), 0, tuple(_differences(client.name, pipeline.p4info, changes)))

    return _each(plan, addresses, verify_switch, "verify", pipelines, journal, progress)


def reconverge(
    plan: Plan,
    addresses: Mapping[str, Address],
    dead_links: DeadLinks,
    *,
    pipelines: Pipelines | None = None,
    journal: Path | None = None,
) -> Report:
    """Imitate a routing protocol after a failure: write ECMP groups and plain routes without the dead links.

    The caller waits as long as that protocol would take. Only differences are written; without dead links all return.
    """
    return push(plan, addresses, pipelines=pipelines, dead_links=dead_links, journal=journal)


def read_switch(name: str, address: Address, p4info: P4Info) -> list[Item]:
    """Everything that a switch has, as items in writing order. Raises ClientError, P4RuntimeError."""
    with GrpcChannels() as channels:
        bodies = P4RuntimeClient(channels, name, address).read(_filters(p4info))
    present = [item for body in bodies if (item := items.decode(p4info, body)) is not None]
    return sorted(present, key=lambda item: items.WRITE_ORDER.index(item.kind))


def write_entities(name: str, address: Address, pipeline: PipelineConfig, entities: Iterable[Entity]) -> int:
    """Bring one switch, which has its pipeline, to these entries instead of the plan's; the number of updates.

    Raises ClientError, P4RuntimeError.
    """
    p4info = pipeline.p4info
    wanted = _encoded(p4info, list(entities))
    with GrpcChannels() as channels, P4RuntimeClient(channels, name, address).as_primary() as client:
        return _apply(client, p4info, items.compare(p4info, wanted, client.read(_filters(p4info))))


def _each(
    plan: Plan,
    addresses: Mapping[str, Address],
    call: Callable[[P4RuntimeClient, Switch, PipelineConfig], _Result],
    action: str,
    pipelines: Pipelines | None,
    journal: Path | None,
    progress: Progress | None,
) -> Report:
    programs = compiled_pipelines() if pipelines is None else pipelines
    start_ns = time.monotonic_ns()
    log = Journal(str(journal) if journal else None, node="controller")
    results: list[_Result] = []
    with GrpcChannels() as channels, ThreadPoolExecutor(WORKERS) as workers:

        def guarded(name: str) -> tuple[str, _Result]:
            try:
                switch = plan.switch_node(name)
                return name, call(P4RuntimeClient(channels, name, addresses[name]), switch, programs[switch.program])
            except UnreachableError as error:
                return name, _Result(differences=(Difference(name, "unreachable", str(error)),))
            except ClientError as error:
                return name, _Result(differences=(Difference(name, "refused", str(error)),))
            except P4RuntimeError as error:
                return name, _Result(differences=(Difference(name, "program", error.message),))

        for done, (name, result) in enumerate(workers.map(guarded, addresses), 1):
            results.append(result)
            log.write("tables", node=name, action=action, written=result.written, differences=len(result.differences))
            if progress is not None:
                progress(name, done, len(addresses))
    log.close()
    return Report(
        switches=len(results),
        entries=sum(result.entries for result in results),
        written=sum(result.written for result in results),
        differences=tuple(difference for result in results for difference in result.differences),
        elapsed_ns=time.monotonic_ns() - start_ns,
    )


def _wanted(plan: Plan, switch: Switch, p4info: P4Info, dead_links: DeadLinks = ()) -> list[Item]:
    return _encoded(p4info, tables(plan, switch, dead_links=dead_links))


def _encoded(p4info: P4Info, entities: list[Entity]) -> list[Item]:
    return [*(items.encode(p4info, entity) for entity in entities), *_untouched_defaults(p4info, entities)]


def _untouched_defaults(p4info: P4Info, entities: Iterable[Entity]) -> Iterator[Item]:
    """Default actions that the plan leaves as the program has them, where P4Info says what that is."""
    changed = {p4info.table(e.table).name for e in entities if isinstance(e, DefaultEntry)}
    for table in p4info.tables.values():
        if table.name not in changed and table.initial_default is not None and table.default_changeable:
            action, args = table.initial_default
            yield items.encode(p4info, DefaultEntry(table.alias, action.alias, args))


def _push_one(client: P4RuntimeClient, pipeline: PipelineConfig, wanted: list[Item]) -> _Result:
    p4info = pipeline.p4info
    written = 0
    if client.cookie() != pipeline.cookie:
        client.set_pipeline(pipeline.config_bytes)
        written += 1
    filters = _filters(p4info)
    changes = items.compare(p4info, wanted, client.read(filters))
    written += _apply(client, p4info, changes)
    if len(changes):
        changes = items.compare(p4info, wanted, client.read(filters))
    return _Result(len(wanted), written, tuple(_differences(client.name, p4info, changes)))


def _apply(client: P4RuntimeClient, p4info: P4Info, changes: Changes) -> int:
    """Write the changes in an order that the references between them allow."""
    written = 0
    for kind in items.WRITE_ORDER:
        batch = [(INSERT if kind in items.INSERTED else MODIFY, item) for item in changes.insert if item.kind == kind]
        batch += [(MODIFY, item) for _, item in changes.modify if item.kind == kind]
        written += _write(client, p4info, batch)
    for kind in reversed(items.WRITE_ORDER):
        batch = [(DELETE, item) for item in changes.delete if item.kind == kind and kind in items.INSERTED]
        batch += [(MODIFY, items.reset(item)) for item in changes.delete if item.kind == kind == items.METER]
        written += _write(client, p4info, batch)
    return written


def _write(client: P4RuntimeClient, p4info: P4Info, batch: list[tuple[int, Item]]) -> int:
    if not batch:
        return 0

    def describe(index: int) -> str:
        kind, item = batch[index]
        return f"{p4rt.Update.Type.Name(kind).lower()} {words.line(p4info, item.entity)}"

    return client.write(((kind, item.body) for kind, item in batch), describe)


def _filters(p4info: P4Info) -> list[bytes]:
    """Requests that read everything that the controller may write."""
    entities = [p4rt.Entity(table_entry=p4rt.TableEntry())]
    for table in p4info.tables.values():
        if table.default_changeable:
            entities.append(p4rt.Entity(table_entry=p4rt.TableEntry(table_id=table.id, is_default_action=True)))
    if p4info.profiles:
        entities.append(p4rt.Entity(action_profile_member=p4rt.ActionProfileMember()))
        entities.append(p4rt.Entity(action_profile_group=p4rt.ActionProfileGroup()))
    entities.extend(p4rt.Entity(meter_entry=p4rt.MeterEntry(meter_id=meter_id)) for meter_id in p4info.meters)
    return [entity.SerializeToString() for entity in entities]


def _wrong_pipeline(client: P4RuntimeClient, pipeline: PipelineConfig) -> Difference:
    cookie = client.cookie()
    state = "none is loaded" if cookie is None else f"cookie {cookie:#x} is loaded"
    return Difference(client.name, "pipeline", f"{state}, expected {pipeline.name} with cookie {pipeline.cookie:#x}")


def _differences(name: str, p4info: P4Info, changes: Changes) -> Iterator[Difference]:
    for item in changes.insert:
        yield Difference(name, "missing", words.line(p4info, item.entity))
    for present, wanted in changes.modify:
        text = words.line(p4info, present.entity)
        yield Difference(name, "different", f"{text}, expected {words.value(p4info, wanted.entity)}")
    for item in changes.delete:
        yield Difference(name, "unexpected", words.line(p4info, item.entity))
    for text in changes.unreadable:
        yield Difference(name, "unexpected", text)
