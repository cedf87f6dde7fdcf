"""Structured control flow to BMv2's graph: tables and conditionals that name their successors.

The graph is built from the end: every statement is told its following node, so a return is only another successor.
Runs of primitives between tables become one action each, in a table without key, as BMv2 has it.
"""

from dataclasses import field

from common.records import Mutable
from p4c.frontend.declared import DEFAULT_TABLE_SIZE, DeclaredAction, DeclaredKey, DeclaredTable
from p4c.frontend.diagnostics import NOWHERE, Diagnostics, SourceSpan
from p4c.frontend.draft import Draft, DraftPipeline
from p4c.frontend.flow import (
    Apply,
    Branch,
    Flow,
    Leave,
    Quit,
    Region,
    Repeat,
    Step,
    bodies,
    flatten,
    leaves_early,
    until_jump,
)
from p4c.model.actions import Action
from p4c.model.expressions import ValidBit
from p4c.model.pipelines import Conditional, DefaultAction, Key, Node, Pipeline, Table

_HIT, _MISS = "__HIT__", "__MISS__"


class TableNode(Mutable):
    """`next` maps actions, or `__HIT__` and `__MISS__`, to nodes; None is the pipeline's end."""

    name: str
    next: dict[str, str | None]
    default_next: str | None
    table: DeclaredTable | None  # None: made for a run of primitives
    run: list[Flow] = field(default_factory=list)
    span: SourceSpan = NOWHERE


class ConditionNode(Mutable):
    name: str
    branch: Branch
    true_next: str | None
    false_next: str | None


def build(draft: Draft, diagnostics: Diagnostics) -> list[Pipeline]:
    """The pipelines; makes the actions that their primitives need and adds these to `draft`."""
    names = {t.name for p in draft.pipelines for t in p.tables} | {a.name for a in draft.actions}
    made: list[Pipeline] = []
    for pipeline in draft.pipelines:
        first_index = sum(len(p.tables) for p in made)
        made.append(_Builder(pipeline, draft, diagnostics, names).build(first_index))
    return made


class _Builder:
    def __init__(self, pipeline: DraftPipeline, draft: Draft, diagnostics: Diagnostics, names: set[str]) -> None:
        self.pipeline = pipeline
        self.draft = draft
        self.diagnostics = diagnostics
        self.names = names
        self.counts: dict[str, int] = {}  # the next number behind each name
        self.applied: dict[DeclaredTable, TableNode] = {}
        self.tables: list[TableNode] = []
        self.conditions: list[ConditionNode] = []

    def build(self, first_index: int) -> Pipeline:
        first = self.sequence(simplify(self.pipeline.body), None, None)
        # The last node was made first.
        tables = [self._table(node, first_index + place) for place, node in enumerate(reversed(self.tables))]
        conditions = [self._conditional(node, place) for place, node in enumerate(reversed(self.conditions))]
        nodes: list[Node] = [*tables, *conditions]
        profiles = tuple(p.profile for p in self.pipeline.profiles if p.profile is not None)
        source = self.diagnostics.source(self.pipeline.span)
        return Pipeline(self.pipeline.name, first, {n.name: n for n in nodes}, profiles, source)

    def unique(self, name: str) -> str:
        candidate, count = name, self.counts.get(name, 0)
        while candidate in self.names:
            candidate, count = f"{name}_{count}", count + 1
        self.names.add(candidate)
        self.counts[name] = count
        return candidate

    def sequence(self, statements: list[Flow], following: str | None, leave: str | None) -> str | None:
        """The first node of `statements`, after which comes `following`, or `leave` at a Leave."""
        statements = until_jump(statements)
        end = len(statements)
        while end > 0:
            start = end
            while start > 0 and _straight(statements[start - 1]):
                start -= 1
            if start < end:
                following = self._action(statements[start:end], following)
                end = start
                continue
            following = self._statement(statements[end - 1], following, leave)
            end -= 1
        return following

    def _statement(self, s: Flow, following: str | None, leave: str | None) -> str | None:
        match s:
            case Leave():
                return leave
            case Quit():
                return None
            case Region():
                return self.sequence(s.body, following, following)
            case Branch():
                true_next = self.sequence(s.then, following, leave)
                false_next = self.sequence(s.otherwise, following, leave)
                if true_next == false_next:
                    return true_next
                name = self.unique("node")
                self.conditions.append(ConditionNode(name, s, true_next, false_next))
                return name
            case Apply():
                return self._apply(s, following, leave)
        raise AssertionError(s)

    def _apply(self, s: Apply, following: str | None, leave: str | None) -> str:
        table = s.table
        next_nodes: dict[str, str | None] = {}
        if s.hit is not None or s.miss is not None:
            next_nodes[_HIT] = self.sequence(s.hit or [], following, leave)
            next_nodes[_MISS] = self.sequence(s.miss or [], following, leave)
        else:
            first = {id(body): self.sequence(body, following, leave) for body in bodies(s)}
            other = following if s.default is None else first[id(s.default)]
            for action, _ in table.actions:
                body = s.cases.get(action.name)
                next_nodes[action.name] = other if body is None else first[id(body)]
        known = self.applied.get(table)
        if known is None:
            known = TableNode(table.name, next_nodes, following, table)
            self.applied[table] = known
            self.names.add(table.name)
            self.tables.append(known)
        elif known.next != next_nodes or known.default_next != following:
            self.diagnostics.error(
                "target",
                f"table {table.name} is applied in two places that go on differently: a BMv2 table has one successor",
                s.span,
                "apply it once, or make a second table",
            )
        return known.name

    def _action(self, run: list[Flow], following: str | None) -> str | None:
        """A run of primitives as a table that always performs one action."""
        if not flatten(run, self.diagnostics.source):
            return following
        span = _place(run)
        stem = span.file.rsplit("/", 1)[-1].removesuffix(".p4").removeprefix("<").removesuffix(">")
        action = self.unique(f"{stem}{span.line}")
        name = self.unique(f"tbl_{action}")
        if _quits(run):
            following = None
        self.tables.append(TableNode(name, {action: following}, following, None, run, span))
        return name

    # --- nodes of the model --------------------------------------------------------------------------------------

    def _conditional(self, node: ConditionNode, index: int) -> Conditional:
        condition, source = node.branch.condition.operand, self.diagnostics.source(node.branch.span)
        return Conditional(node.name, index, condition, node.true_next, node.false_next, source)

    def _table(self, node: TableNode, index: int) -> Table:
        if node.table is None:
            return self._table_of_run(node, index)
        t = node.table
        by_hit = _HIT in node.next
        profile = t.profile.profile if t.profile is not None else None
        size = t.size or DEFAULT_TABLE_SIZE
        default = DefaultAction(_action_of(t.default), tuple(t.default_arguments), t.default_const)
        return Table(
            name=t.name,
            index=index,
            match=match_type(t),
            keys=tuple(_key(k) for k in t.keys),
            actions=tuple(_action_of(a) for a, _ in t.actions),
            max_size=len(t.entries) if t.entries and t.entries_const else max(size, len(t.entries or ())),
            default=default if profile is None else None,
            initial=t.entries or (),
            const_entries=t.entries is not None,
            profile=profile,
            counter=t.counter.counter if t.counter is not None else None,
            meter=t.meter.meter if t.meter is not None else None,
            support_timeout=t.support_timeout,
            by_hit=by_hit,
            next_hit=node.next.get(_HIT),
            next_miss=node.next.get(_MISS),
            next_by_action={} if by_hit else node.next,
            next_without_action=node.next[_MISS] if by_hit else node.default_next,
            source=self.diagnostics.source(t.span),
        )

    def _table_of_run(self, node: TableNode, index: int) -> Table:
        (name,) = node.next
        action = Action(name, len(self.draft.actions), (), flatten(node.run, self.diagnostics.source))
        self.draft.actions.append(action)
        return Table(
            name=node.name,
            index=index,
            match="exact",
            keys=(),
            actions=(action,),
            max_size=DEFAULT_TABLE_SIZE,
            default=DefaultAction(action, (), True),
            next_by_action=node.next,
            next_without_action=node.default_next,
            source=self.diagnostics.source(node.span),
        )


def _action_of(declared: DeclaredAction) -> Action:
    assert declared.action is not None
    return declared.action


def _key(k: DeclaredKey) -> Key:
    bits = 1 if isinstance(k.target, ValidBit) else k.target.field.width_bits
    return Key(k.name, "ternary" if k.match == "optional" else k.match, k.target, bits, k.mask)


def match_type(t: DeclaredTable) -> str:
    """The table's own match type, the most general of its keys'."""
    kinds = {k.match for k in t.keys}
    if "range" in kinds:
        return "range"
    if kinds & {"ternary", "optional"}:
        return "ternary"
    return "lpm" if "lpm" in kinds else "exact"


def simplify(statements: list[Flow]) -> list[Flow]:
    """Take away regions that nothing leaves early, so that their statements join the neighbours."""
    made: list[Flow] = []
    for s in statements:
        if isinstance(s, Region):
            body = simplify(s.body)
            if body and isinstance(body[-1], Leave):
                body = body[:-1]
            if s.whole and not _plain(body):
                made.append(Region(body, True, s.span))
            elif leaves_early(body):
                made.append(Region(body, s.whole, s.span))
            else:
                made.extend(body)
        elif isinstance(s, Repeat):
            made.append(Repeat(simplify(s.body)))
        elif isinstance(s, Branch):
            made.append(Branch(s.condition, simplify(s.then), simplify(s.otherwise), s.span))
        elif isinstance(s, Apply):
            shared = {id(body): simplify(body) for body in bodies(s)}
            for body_name in ("hit", "miss", "default"):
                body = getattr(s, body_name)
                if body is not None:
                    setattr(s, body_name, shared[id(body)])
            s.cases = {name: shared[id(body)] for name, body in s.cases.items()}
            made.append(s)
        else:
            made.append(s)
    return until_jump(made)


def _straight(s: Flow) -> bool:
    return isinstance(s, Step) or (isinstance(s, Region) and s.whole)


def _plain(statements: list[Flow]) -> bool:
    return all(isinstance(s, Step) for s in statements)


def _quits(statements: list[Flow]) -> bool:
    return any(isinstance(s, Quit) or (isinstance(s, Region) and _quits(s.body)) for s in statements)


def _place(statements: list[Flow]) -> SourceSpan:
    spans: list[SourceSpan] = [getattr(s, "span", NOWHERE) for s in statements]
    return next((span for span in spans if span is not NOWHERE), NOWHERE)
