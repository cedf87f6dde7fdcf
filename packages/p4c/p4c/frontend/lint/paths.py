"""The walk over all paths of a program: parser, ingress, egress, with what may hold at each point."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.draft import Draft
from p4c.frontend.lint.effects import DROPS, USER_METADATA, Effects, field_key
from p4c.frontend.lint.worlds import Facts, Worlds
from p4c.model.actions import Action, Primitive
from p4c.model.expressions import Binary, Bool, Const, Expression, FieldRef, Unary, ValidBit
from p4c.model.headers import Header, Stack, Union
from p4c.model.kind import Kind
from p4c.model.parsers import Call, Extract, Operation, Set, StackNext, State, Transition, UnionStackNext, Verify
from p4c.model.pipelines import ActionCallNode, Conditional, Node, Pipeline, Table
from p4c.model.program import Program
from p4c.model.source import SourceInfo

Place = SourceSpan | SourceInfo | None
_Place = TypeVar("_Place")
_CLONES = {"clone_ingress_pkt_to_egress": 1, "clone_egress_pkt_to_egress": 2}  # with the clone's instance_type
_ALONE, _ONE = frozenset({0}), frozenset({1})
DROP = 511  # as an egress_spec


class Paths:
    """The walk. `tell` is called with a bit, whether it is set on no path at all, and a place; see `Effects`."""

    def __init__(self, program: Program, draft: Draft, tell: Callable[[int, bool, Place], None]) -> None:
        self.program, self.places, self.tell = program, draft.places, tell
        self.effects = Effects(program, draft.named)
        self.read: dict[str, int] = {}  # the bits that a part of the program reads
        self.writes: list[tuple[str, Primitive, FieldRef]] = []  # of intrinsic metadata and headers, with the pipeline
        self.removed = 0  # headers that the program makes invalid itself
        self.extracted = 0
        self.cloned: set[int] = set()
        self.told = {p.name: _told(p) for p in (program.ingress, program.egress)}  # of which fields facts are of use
        self.told["ingress"] |= self.told["egress"]
        for pipeline in self.told.values():
            pipeline |= {self.effects.egress_spec, field_key(program.intrinsics.instance_type)}
        self.tested: set[int] = set()
        self.orders = {p.name: _in_order(p) for p in (program.ingress, program.egress)}
        self.instance_type = field_key(program.intrinsics.instance_type)
        self.part = "parser"
        self.focus = 0
        self.ended = Worlds(0, {})  # at exits of the present pipeline
        self.suspects = 0

    def walk(self) -> None:
        """Once for all bits together, then for each that this could not tell to be set."""
        self._walk(0)
        for bit in self.effects.names:
            if bit & self.suspects:
                self._walk(bit)

    def _walk(self, focus: int) -> None:
        self.focus, self.part = focus, "parser"
        self.tested = self.told["ingress"] if focus else set()  # all together tell too little for facts
        sure = self.effects.metadata
        zero = dict.fromkeys(self._zeroed(), (True, _ALONE))
        parsed = self.parser(Worlds(focus, {(0, 0): (sure, sure, zero)}))
        known = self.program.intrinsics
        kind, spec = self.instance_type, self.effects.egress_spec
        start = self.pipeline(self.program.ingress, parsed)
        if all(target != known.mcast_grp for _, _, target in self.writes):
            start = start.learn(spec, False, frozenset({DROP}))
        start = start.learn(kind, False, frozenset(_CLONES.values()))
        if 1 in self.cloned:
            start = start.join(self._copies(parsed, kind, 1, zero))
        done = self.pipeline(self.program.egress, start)
        if 2 in self.cloned:
            self.pipeline(self.program.egress, start.join(self._copies(done, kind, 2, zero)))

    def _copies(self, worlds: Worlds, kind: int, number: int, zero: Facts) -> Worlds:
        """Copies of packets: with their headers, and metadata as in the beginning."""
        metadata = {h.index for h in self.program.headers if h.metadata}
        kept = worlds.forget(lambda key: key >> 20 in metadata).cases.values()
        return worlds.of((s, p, {**f, **zero, kind: (True, frozenset({number}))}) for s, p, f in kept)

    def _zeroed(self) -> list[int]:
        """Metadata that is 0 in the beginning, also when a packet comes once more."""
        scalars = self.effects.scalars
        if scalars is None:
            return []
        kept = {field_key(f) for one in self.program.field_lists.values() for f in one.fields}
        places = [FieldRef(scalars, f) for f in scalars.type.fields if f.name.startswith(USER_METADATA)]
        return [key for p in places if (key := field_key(p)) in self.tested and key not in kept]

    # --- what parts of a program do ------------------------------------------------------------------------------

    def use(self, worlds: Worlds, needed: int, place: Place) -> Worlds:
        """Complain of bits that are not set for sure; behind it they count as set, so that each is told once a path."""
        self.read[self.part] = self.read.get(self.part, 0) | needed
        return self._touch(worlds, needed, place)

    def _touch(self, worlds: Worlds, needed: int, place: Place) -> Worlds:
        needed &= self.focus or -1
        lacking = needed & ~worlds.sure if needed and worlds else 0
        if not lacking:
            return worlds
        self.suspects |= lacking
        if lacking & self.focus:
            self.tell(self.focus, not self.focus & worlds.possible, place)
        return worlds.bits(0, lacking, 0)

    def assign(self, worlds: Worlds, target: FieldRef, value: object, place: Place) -> Worlds:
        bit = self.effects.place(target)
        if bit & self.effects.headers:
            worlds = self._touch(worlds, bit, place)
        elif bit & ~worlds.sure:
            worlds = worlds.bits(0, bit, 0)
        if not self.tested or (key := field_key(target)) not in self.tested:
            return worlds
        if isinstance(value, Expression) and (truth := _truth(value)) is not None:
            yes, no = self.split(truth, worlds, None)
            return yes.put(key, True, _ONE).join(no.put(key, True, _ALONE))
        if isinstance(value, Const):
            return worlds.put(key, True, frozenset({value.value}))
        if isinstance(value, FieldRef):
            source, cases = field_key(value), worlds.forget(lambda k: k == key).cases.values()
            return worlds.of((s, p, {**f, key: f[source]} if source in f else f) for s, p, f in cases)
        return worlds.forget(lambda k: k == key)

    def make(self, worlds: Worlds, header: Header, valid: bool) -> Worlds:
        """A header gets new fields and validity."""
        bit = self.effects.bits.get(header.index, 0)
        return worlds.forget(lambda key: key >> 20 == header.index).bits(bit, bit if valid else 0, 0)

    def copy(self, worlds: Worlds, header: Header, source: Header) -> Worlds:
        """A header gets the fields and validity of another."""
        bit, other = (self.effects.bits.get(h.index, 0) for h in (header, source))
        cases = worlds.forget(lambda key: key >> 20 == header.index).cases.values()
        return worlds.of(
            (s & ~bit | (bit if s & other else 0), p & ~bit | (bit if p & other else 0), f) for s, p, f in cases
        )

    def blur(self, worlds: Worlds, headers: Iterable[Header]) -> Worlds:
        """Any of these headers may be valid from here on, or not."""
        bits = sum(self.effects.bits.get(h.index, 0) for h in headers)
        return worlds.bits(bits, 0, bits)

    def split(self, e: Expression, worlds: Worlds, place: Place) -> tuple[Worlds, Worlds]:
        """The worlds in which the condition `e` holds, and those in which not. Without a place nothing is told."""
        match e:
            case Bool(value):
                return (worlds, worlds.nowhere) if value else (worlds.nowhere, worlds)
            case Unary("not", operand):
                yes, no = self.split(operand, worlds, place)
                return no, yes
            case Binary("and" | "or", left, right):
                yes, no = self.split(left, worlds, place)
                if e.op == "and":
                    both, other = self.split(right, yes, place)
                    return both, no.join(other)
                both, other = self.split(right, no, place)
                return yes.join(both), other
            case Unary("d2b", ValidBit(header)):
                bit = self.effects.bits.get(header.index, 0)
                self.read[self.part] = self.read.get(self.part, 0) | bit
                if not bit:
                    return worlds, worlds
                no = worlds.where(bit, False).bits(bit, 0, 0)
                return worlds.where(bit).bits(0, bit, 0), no
        if place is not None:
            worlds = self.use(worlds, self.effects.needs(e), place)
        match e:
            case Binary("==" | "!=", FieldRef() as target, Const() as constant):
                yes, no = self._compared(worlds, field_key(target), frozenset({constant.value}))
                return (yes, no) if e.op == "==" else (no, yes)
            case Unary("d2b", FieldRef() as target):
                no, yes = self._compared(worlds, field_key(target), _ALONE)
                return yes, no
        return worlds, worlds

    def _compared(self, worlds: Worlds, key: int, values: frozenset[int]) -> tuple[Worlds, Worlds]:
        if key not in self.tested:
            return worlds, worlds
        if key == self.instance_type and self.part == "ingress" and values != _ALONE:
            # Which packets come once more, only a control plane and other parts of the program know.
            again = worlds.learn(key, True, values).bits(0, worlds.possible & self.effects.headers, 0)
            return again, worlds.learn(key, False, values)
        return worlds.learn(key, True, values), worlds.learn(key, False, values)

    # --- actions and pipelines -----------------------------------------------------------------------------------

    def action(self, action: Action, worlds: Worlds) -> Worlds:
        """The worlds after the action; those at an exit go to `ended`."""
        if self.focus:
            bits, keys = self.effects.of_action(action)
            if not bits & self.focus and keys.isdisjoint(self.tested):
                return worlds
        waiting: dict[int, Worlds] = {}
        for position, p in enumerate(action.primitives):
            if position in waiting:
                worlds = worlds.join(waiting.pop(position))
            if p.op == "_jump" and isinstance(p.args[0], Const):
                waiting[p.args[0].value] = worlds.join(*_at(waiting, p.args[0].value))
                worlds = worlds.nowhere
            elif p.op == "_jump_if_zero" and isinstance(p.args[0], Expression) and isinstance(p.args[1], Const):
                worlds, no = self.split(p.args[0], worlds, p.source)
                waiting[p.args[1].value] = no.join(*_at(waiting, p.args[1].value))
            elif p.op == "exit":
                self.ended = self.ended.join(worlds)
                worlds = worlds.nowhere
            elif worlds:
                worlds = self.primitive(p, worlds)
        return worlds.join(*waiting.values())

    def primitive(self, p: Primitive, worlds: Worlds) -> Worlds:
        needed, looked_at, written = self.effects.of_primitive(p)
        if written is not None and self.focus and field_key(written) not in self.tested:
            needed &= self.focus
            if not needed and not self.effects.place(written) & self.focus:
                return worlds
        if looked_at:
            self.read[self.part] = self.read.get(self.part, 0) | looked_at
        if needed:
            worlds = self.use(worlds, needed, p.source)
        first = p.args[0] if p.args else None
        if written is not None:
            if not self.focus and self.effects.place(written) & ~self.effects.variables:
                self.writes.append((self.part, p, written))
            return self.assign(worlds, written, p.args[1] if p.op == "assign" else None, p.source)
        if p.op in ("assign_header", "copy_header") and isinstance(first, Header):
            if not isinstance(p.args[1], Header):
                return self.blur(worlds, [first])
            self.read[self.part] = self.read.get(self.part, 0) | self.effects.bits.get(p.args[1].index, 0)
            return self.copy(worlds, first, p.args[1])
        if isinstance(first, Stack | Union):
            return self.blur(worlds, first.headers)
        if p.op in ("add_header", "remove_header") and isinstance(first, Header):
            if p.op == "remove_header":
                self.removed |= self.effects.bits.get(first.index, 0)
            return self.make(worlds, first, p.op == "add_header")
        if p.op in _CLONES:
            self.cloned.add(_CLONES[p.op])
        elif p.op in DROPS:
            return worlds.put(self.effects.egress_spec, True, frozenset({DROP}))
        return worlds

    def pipeline(self, pipeline: Pipeline, worlds: Worlds) -> Worlds:
        """The worlds at the pipeline's end, exits included."""
        self.part, self.ended = pipeline.name, worlds.nowhere
        told = self.told[pipeline.name]
        start = worlds.forget(lambda key: key not in told).bits(self.effects.variables, 0, 0)  # a pipeline has its own
        at: dict[str | None, Worlds] = {pipeline.init: start}
        for name in self.orders[pipeline.name]:
            if at.get(name):
                for target, there in self.node(pipeline.nodes[name], at[name]):
                    at[target] = at[target].join(there) if target in at else there
        return self.ended.join(*_at(at, None))

    def node(self, node: Node, worlds: Worlds) -> Iterable[tuple[str | None, Worlds]]:
        if isinstance(node, Conditional):
            yes, no = self.split(node.expression, worlds, node.source)
            return (node.if_true, yes), (node.if_false, no)
        if isinstance(node, ActionCallNode):
            return [(node.next, self.action(node.action, worlds))]
        return self.table(node, worlds)

    def table(self, t: Table, worlds: Worlds) -> list[tuple[str | None, Worlds]]:
        for key in t.keys:
            needed = self.effects.needs(key.target)
            self.read[self.part] = self.read.get(self.part, 0) | needed
            never = needed & self.effects.headers & ~worlds.possible  # others are matched as 0
            worlds = self._touch(worlds, needed & self.effects.variables | never, t.source)
        entered = self._entered(t, worlds)
        if t.meter is not None and t.meter.result is not None:
            entered = self.assign(entered, t.meter.result, None, t.source)
        default = t.default.action if t.default is not None else None
        found: list[tuple[str | None, Worlds]] = []
        for action in t.actions:
            start = entered if t.keys else worlds.nowhere if t.default is not None and t.default.const else worlds
            if not t.by_hit and action is default:
                start = start.join(worlds)
            target = t.next_hit if t.by_hit else t.next_by_action.get(action.name)
            found.append((target, self.action(action, start)))
        if t.by_hit or default is None or default not in t.actions:
            missed = worlds if default is None else self.action(default, worlds)
            found.append((t.next_miss if t.by_hit else t.next_without_action, missed))
        return found

    def _entered(self, t: Table, worlds: Worlds) -> Worlds:
        """The worlds in which an entry matches: entries may be such that they match only valid headers."""
        told = 0
        for key in t.keys:
            target = key.target
            mine = 0 if isinstance(target, ValidBit) else self.effects.bits.get(target.header.index, 0)
            if mine and key.match == "exact":
                worlds = worlds.where(mine)
            told |= -1 if key.match == "exact" else ~mine
        return worlds.bits(0, told & worlds.possible & self.effects.headers, 0) if told else worlds

    # --- the parser ----------------------------------------------------------------------------------------------

    def parser(self, worlds: Worlds) -> Worlds:
        """The worlds of packets that are accepted; those that end with an error are left out."""
        parser = self.program.parser
        states = {state.name: state for state in parser.states}
        at: dict[str | None, Worlds] = {parser.init_state: worlds}
        waiting = [parser.init_state]
        while waiting:
            name = waiting.pop()
            if name is None:
                continue
            for target, there in self.state(states[name], at[name]):
                after = there.join(*_at(at, target))
                if after != at.get(target, worlds.nowhere):
                    at[target] = after
                    waiting.append(target)
        return at.get(None, worlds.nowhere)

    def state(self, state: State, worlds: Worlds) -> list[tuple[str | None, Worlds]]:
        for operation in state.operations:
            worlds = self.operation(operation, worlds)
        place = self.places.get(id(state.key))
        found: list[tuple[str | None, Worlds]] = []
        for part in state.key:
            if isinstance(part.source, FieldRef):
                worlds = self.use(worlds, self.effects.needs(part.source), place)
        for t in state.transitions:
            taken, worlds = self._taken(state, t, worlds)
            found.append((t.next_state, taken))
        return [*found, (state.default, worlds)]

    def _taken(self, state: State, t: Transition, worlds: Worlds) -> tuple[Worlds, Worlds]:
        """The worlds in which the transition is taken, and those in which it may not be."""
        if t.value_set is not None:
            return worlds, worlds
        taken, other = worlds, worlds
        parts = [(part, value, mask) for part, value, mask in zip(state.key, t.values, t.masks, strict=True) if mask]
        for part, value, mask in parts:
            if isinstance(part.source, FieldRef) and mask == (1 << part.width_bits) - 1:
                taken, no = self._compared(taken, field_key(part.source), frozenset({value}))
                other = no if len(parts) == 1 else other
        return taken, other

    def operation(self, o: Operation, worlds: Worlds) -> Worlds:
        place = self.places.get(id(o))
        worlds = self.use(worlds, self.effects.of_operation(o), place)
        match o:
            case Set(target, value):
                return self.assign(worlds, target, value, place)
            case Extract(into=StackNext(stack)):
                return self.make(self.blur(worlds, stack.headers[1:]), stack.headers[0], True)
            case Extract(into=UnionStackNext(stack)):
                return self.blur(worlds, [h for union in stack.unions for h in union.headers])
            case Extract(into=Header() as header):
                self.extracted |= self.effects.bits.get(header.index, 0)
                return self.make(worlds, header, True)
            case Verify(condition):
                return self.split(condition, worlds, None)[0]
            case Call(primitive):
                return self.primitive(primitive, worlds)
        return worlds


def _at(worlds: Mapping[_Place, Worlds], place: _Place) -> list[Worlds]:
    """The worlds that are known so far of a place."""
    return [worlds[place]] if place in worlds else []


def _truth(e: Expression) -> Expression | None:
    """The condition whose truth the value `e` is; None where it is a number of another kind."""
    if e.kind is Kind.BOOL:
        return e
    return e.operand if isinstance(e, Unary) and e.op == "b2d" else None


def _told(pipeline: Pipeline) -> set[int]:
    """The fields that a pipeline's conditions compare with constants."""
    found: set[int] = set()
    actions: dict[int, Action] = {}
    for node in pipeline.nodes.values():
        if isinstance(node, Conditional):
            _compared(node.expression, found)
        elif isinstance(node, Table):
            actions |= {a.id: a for a in node.actions}
        else:
            actions[node.action.id] = node.action
    for action in actions.values():
        for p in action.primitives:
            if p.op == "_jump_if_zero" and isinstance(p.args[0], Expression):
                _compared(p.args[0], found)
    return found


def _compared(e: Expression, found: set[int]) -> None:
    """Add the fields that the condition `e` compares with a constant."""
    match e:
        case Binary("==" | "!=", FieldRef() as target, Const()) | Unary("d2b", FieldRef() as target):
            found.add(field_key(target))
        case Binary("and" | "or", left, right):
            _compared(left, found)
            _compared(right, found)
        case Unary("not", operand):
            _compared(operand, found)


def _in_order(pipeline: Pipeline) -> list[str]:
    """The nodes that can be reached, each before those that follow it."""
    order: list[str] = []
    seen: set[str | None] = {None}
    waiting: list[tuple[str | None, bool]] = [(pipeline.init, False)]
    while waiting:
        name, left = waiting.pop()
        if left and name is not None:
            order.append(name)
        elif name is not None and name not in seen:
            seen.add(name)
            waiting.append((name, True))
            waiting += [(target, False) for target in _following(pipeline.nodes[name])]
    return order[::-1]


def _following(node: Node) -> list[str | None]:
    if isinstance(node, Conditional):
        return [node.if_true, node.if_false]
    if isinstance(node, ActionCallNode):
        return [node.next]
    return [node.next_hit, node.next_miss, node.next_without_action, *{*node.next_by_action.values()}]
