"""The P4 programs' counters by port, class and cause, read over P4Runtime from any switch that has P4Runtime."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from controller import tables
from controller.client import Address, GrpcChannels, P4RuntimeClient, UnreachableError, UnreadyError
from controller.pipelines import Pipelines
from switch.p4rt import P4Info
from switch.p4rt import p4runtime_pb2 as p4rt
from topo import Plan, Switch
from topo.graph import port_count

CLASSES_PER_PORT = 8  # p4/README.md, "Counters"
CLASS_NAMES: Mapping[int, str] = {
    tables.NO_TRIM: "no-trim",
    tables.TRIMMABLE: "trimmable",
    tables.TRIMMABLE_RETRANSMIT: "retransmit",
    tables.TRIMMED: "trimmed",
    tables.TRIMMED_LAST_HOP: "trimmed-last",
    tables.CONTROL: "control",
    tables.ROCE: "roce",
}
DROP_SUFFIX = "_drops"
WORKERS = 8


@dataclass(slots=True)
class ClassCounters:
    """Packets of one class at one port. `drops` are by cause, such as `no_route`; all are totals."""

    received: int = 0
    sent: int = 0
    trimmed: int = 0
    ecn_marked: int = 0
    drops: dict[str, int] = field(default_factory=dict)


Cells = dict[int, dict[str, ClassCounters]]
"""By port and class."""


def read_counters(plan: Plan, addresses: Mapping[str, Address], pipelines: Pipelines) -> dict[str, Cells]:
    """The counters of each of these switches, zeros left out. Raises ClientError.

    Switches that run no program now, such as crashed ones, are left out.
    """
    with GrpcChannels() as channels, ThreadPoolExecutor(WORKERS) as workers:

        def read_switch(name: str) -> Cells | None:
            switch = plan.switch_node(name)
            p4info = pipelines[switch.program].p4info
            client = P4RuntimeClient(channels, name, addresses[name])
            try:
                return decoded(p4info, client.read(cells(plan, switch, p4info)))
            except (UnreadyError, UnreachableError):  # a crashed BMv2 has no process either
                return None

        read = zip(addresses, workers.map(read_switch, addresses), strict=True)
        return {name: cells for name, cells in read if cells is not None}


def drop_causes(p4info: P4Info) -> list[str]:
    """Every cause by which a program counts drops."""
    names = (counter.name.rsplit(".", 1)[-1] for counter in p4info.counters.values())
    return [name.removesuffix(DROP_SUFFIX) for name in names if name.endswith(DROP_SUFFIX)]


def cells(plan: Plan, switch: Switch, p4info: P4Info) -> Iterable[bytes]:
    """Requests for the cells of the switch's own ports, of all counters; the arrays have cells for 512 ports."""
    for counter_id in p4info.counters:
        for index in range(CLASSES_PER_PORT, (port_count(plan, switch) + 1) * CLASSES_PER_PORT):
            entry = p4rt.CounterEntry(counter_id=counter_id)
            entry.index.index = index
            yield p4rt.Entity(counter_entry=entry).SerializeToString()


def decoded(p4info: P4Info, entities: Iterable[bytes]) -> Cells:
    """Answers by port and class; a counter is known by the last part of its name."""
    cells: Cells = {}
    for body in entities:
        entry = p4rt.Entity.FromString(body).counter_entry
        _note(cells, p4info.counters[entry.counter_id].name, int(entry.index.index), int(entry.data.packet_count))
    return cells


def counted(plan: Plan, switch: Switch, p4info: P4Info, read: Callable[[str, int, int], list[int]]) -> Cells:
    """The same of a switch in this process: `read` gives packets by counter, first cell and count."""
    cells: Cells = {}
    for counter in p4info.counters.values():
        cells_of_ports = read(counter.name, CLASSES_PER_PORT, port_count(plan, switch) * CLASSES_PER_PORT)
        for index, packets in enumerate(cells_of_ports, CLASSES_PER_PORT):
            _note(cells, counter.name, index, packets)
    return cells


def _note(cells: Cells, counter: str, index: int, packets: int) -> None:
    if not packets:
        return
    port, traffic_class = divmod(index, CLASSES_PER_PORT)
    name = CLASS_NAMES.get(traffic_class, str(traffic_class))
    counters = cells.setdefault(port, {}).setdefault(name, ClassCounters())
    what = counter.rsplit(".", 1)[-1]
    if what.endswith(DROP_SUFFIX):
        counters.drops[what.removesuffix(DROP_SUFFIX)] = packets
    elif what in ("received", "sent", "trimmed", "ecn_marked"):
        setattr(counters, what, packets)
