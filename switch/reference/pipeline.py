"""Walks a pipeline's nodes: tables, conditionals and action calls."""

from collections.abc import Callable

from p4c.entries import GroupRef, MemberRef
from p4c.model.pipelines import ActionCallNode, Conditional, Key, Node, Pipeline, Table
from switch.reference.actions import ActionCompiler
from switch.reference.packet import Packet
from switch.reference.primitives import COLOURS
from switch.reference.runtime import Runtime
from switch.reference.tables import InstalledEntry, TableState
from switch.reference.trace import show
from switch.rules import Pair

# Runs a node and returns the name of the next one.
Visit = Callable[[Packet], str | None]


class PipelineRunner:
    def __init__(
        self, pipeline: Pipeline, runtime: Runtime, actions: ActionCompiler, tables: dict[str, TableState]
    ) -> None:
        self._pipeline = pipeline
        self._runtime = runtime
        self._actions = actions
        self._visits = {name: self._visit(node, tables) for name, node in pipeline.nodes.items()}

    def run(self, packet: Packet) -> None:
        self._runtime.record(packet, "pipeline", pipeline=self._pipeline.name)
        name = self._pipeline.init
        while name is not None and not packet.exited:  # the loader refuses circles
            name = self._visits[name](packet)

    def _visit(self, node: Node, tables: dict[str, TableState]) -> Visit:
        if isinstance(node, Table):
            return self._table(node, tables[node.name])
        if isinstance(node, Conditional):
            return self._conditional(node)
        return self._action_call(node)

    def _action_call(self, node: ActionCallNode) -> Visit:
        run = self._actions.runner(node.action)

        def visit(packet: Packet) -> str | None:
            run(packet, ())
            return node.next

        return visit

    def _conditional(self, node: Conditional) -> Visit:
        test, runtime = self._runtime.expressions.test(node.expression), self._runtime
        source = "" if node.source is None else f" ({node.source.fragment})"

        def visit(packet: Packet) -> str | None:
            result = test(packet)
            runtime.record(packet, "condition", condition=node.name, source=source, result=result)
            return node.if_true if result else node.if_false

        return visit

    def _table(self, table: Table, state: TableState) -> Visit:
        runtime, actions = self._runtime, self._actions
        set_colour = None
        if table.meter is not None and table.meter.result is not None:
            set_colour = runtime.expressions.writer(table.meter.result)

        def visit(packet: Packet) -> str | None:
            key = state.key(packet)
            entry = state.lookup(key)
            if entry is None:
                chosen = state.default
            else:
                entry.hit_ns = runtime.now_ns
                if table.counter is not None:
                    entry.counter.count(packet.ingress_length)
                if set_colour is not None and table.meter is not None:
                    size = packet.ingress_length if table.meter.bytes else 1
                    colour = entry.meter.colour(size, runtime.now_ns)
                    set_colour(packet, colour)
                chosen = state.resolve(entry.action, packet)
            if runtime.trace is not None:
                self._tell(packet, table, key, entry)
                if entry is not None and set_colour is not None and table.meter is not None:
                    runtime.record(packet, "meter", meter=table.meter.name, index=entry.handle, colour=COLOURS[colour])
            if chosen is not None:
                actions.runner(chosen[0])(packet, chosen[1])
            if table.by_hit:
                return table.next_miss if entry is None else table.next_hit
            return table.next_without_action if chosen is None else table.next_by_action[chosen[0].name]

        return visit

    def _tell(self, packet: Packet, table: Table, key: tuple[int, ...], entry: InstalledEntry | None) -> None:
        shown = {k.name: show(v, k.width_bits) for k, v in zip(table.keys, key, strict=True)}
        data: dict[str, object] = {"table": table.name, "key": shown, "hit": entry is not None}
        if entry is not None:
            data["handle"] = entry.handle
            data["entry"] = {k.name: show_pair(k, p) for k, p in zip(table.keys, entry.pairs, strict=True)}
            if isinstance(entry.action, MemberRef):
                data["choice"] = f"member {entry.action.member_id}"
            elif isinstance(entry.action, GroupRef):
                data["choice"] = f"group {entry.action.group_id}"
        self._runtime.record(packet, "table", **data)


def show_pair(key: Key, pair: Pair) -> str:
    """A field's canonical match, for the trace."""
    digits = (key.width_bits + 3) // 4
    full = (1 << key.width_bits) - 1
    first, second = pair
    if key.match == "range":
        return f"0x{first:0{digits}x}..0x{second:0{digits}x}"
    if second == full:
        return f"0x{first:0{digits}x}"
    if second == 0:
        return "any"
    if key.match == "lpm":
        return f"0x{first:0{digits}x}/{second.bit_count()}"
    return f"0x{first:0{digits}x} &&& 0x{second:0{digits}x}"
