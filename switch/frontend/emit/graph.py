"""Structured control flow to BMv2's graph: tables and conditionals that name their successors.

The graph is built from the end: every statement is told its following node, so a return is only another successor.
Runs of primitives between tables become one action each, in a table without key, as BMv2 has it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from switch.frontend import ir
from switch.frontend.check.types import Bits
from switch.frontend.diagnostics import NOWHERE, Diagnostics, Span
from switch.frontend.flow import leaves_early
from switch.records import Mutable


class TableNode(Mutable):
    """`next` maps actions, or `__HIT__` and `__MISS__`, to nodes; None is the pipeline's end."""

    name: str
    table: ir.TableDef
    next: dict[str, str | None]
    default_next: str | None


class ConditionNode(Mutable):
    name: str
    condition: ir.Expr
    true_next: str | None
    false_next: str | None
    span: Span


@dataclass(slots=True)
class Graph:
    """One pipeline: its first node and all nodes, in the order in which they run."""

    first: str | None = None
    tables: list[TableNode] = field(default_factory=list)
    conditions: list[ConditionNode] = field(default_factory=list)


def build(pipeline: ir.Pipeline, program: ir.Program, diagnostics: Diagnostics, names: set[str]) -> Graph:
    """The graph of a pipeline; makes the actions and tables that its primitives need and adds them to `program`."""
    return _Builder(pipeline, program, diagnostics, names).build()


class _Builder:
    def __init__(self, pipeline: ir.Pipeline, program: ir.Program, diagnostics: Diagnostics, names: set[str]) -> None:
        self.pipeline = pipeline
        self.program = program
        self.diagnostics = diagnostics
        self.names = names
        self.nodes: dict[ir.TableDef, TableNode] = {}
        self.graph = Graph()
        self.made: list[ir.ActionDef] = []

    def build(self) -> Graph:
        self.graph.first = self.sequence(simplify(self.pipeline.body), None, None)
        self.graph.tables.reverse()
        self.graph.conditions.reverse()
        self.program.actions.extend(reversed(self.made))
        return self.graph

    def unique(self, name: str) -> str:
        candidate, count = name, 0
        while candidate in self.names:
            candidate, count = f"{name}_{count}", count + 1
        self.names.add(candidate)
        return candidate

    def sequence(self, statements: list[ir.Stmt], following: str | None, leave: str | None) -> str | None:
        """The first node of `statements`, after which comes `following`, or `leave` at a Leave."""
        statements = _until_jump(statements)
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

    def _statement(self, s: ir.Stmt, following: str | None, leave: str | None) -> str | None:
        match s:
            case ir.Leave():
                return leave
            case ir.Quit():
                return None
            case ir.Region():
                return self.sequence(s.body, following, following)
            case ir.Branch():
                true_next = self.sequence(s.then, following, leave)
                false_next = self.sequence(s.otherwise, following, leave)
                if true_next == false_next:
                    return true_next
                name = self.unique("node")
                self.graph.conditions.append(ConditionNode(name, s.condition, true_next, false_next, s.span))
                return name
            case ir.Apply():
                return self._apply(s, following, leave)
        raise AssertionError(s)

    def _apply(self, s: ir.Apply, following: str | None, leave: str | None) -> str:
        table = s.table
        next_nodes: dict[str, str | None] = {}
        if s.hit is not None or s.miss is not None:
            next_nodes["__HIT__"] = self.sequence(s.hit or [], following, leave)
            next_nodes["__MISS__"] = self.sequence(s.miss or [], following, leave)
        else:
            other = self.sequence(s.default, following, leave) if s.default is not None else following
            for action, _ in table.actions:
                body = s.cases.get(action.name)
                next_nodes[action.name] = self.sequence(body, following, leave) if body is not None else other
        known = self.nodes.get(table)
        if known is None:
            known = TableNode(table.name, table, next_nodes, following)
            self.nodes[table] = known
            self.names.add(table.name)
            self.graph.tables.append(known)
        elif known.next != next_nodes or known.default_next != following:
            self.diagnostics.error(
                "target",
                f"table {table.name} is applied in two places that go on differently: a BMv2 table has one successor",
                s.span,
                "apply it once, or make a second table",
            )
        return known.name

    def _action(self, run: list[ir.Stmt], following: str | None) -> str | None:
        """A run of primitives as a table that always performs one action."""
        if not flatten(run):
            return following
        span = _place(run)
        stem = span.file.rsplit("/", 1)[-1].removesuffix(".p4").removeprefix("<").removesuffix(">")
        name = self.unique(f"{stem}{span.line}")
        action = ir.ActionDef(name, [], run, span=span, hidden=True)
        self.made.append(action)
        table_name = self.unique(f"tbl_{name}")
        table = ir.TableDef(table_name, [], [(action, [])], action, [], True, None, False, 0, span=span, hidden=True)
        if _quits(run):
            following = None
        self.graph.tables.append(TableNode(table_name, table, {name: following}, following))
        return table_name


def simplify(statements: list[ir.Stmt]) -> list[ir.Stmt]:
    """Take away regions that nothing leaves early, so that their statements join the neighbours."""
    made: list[ir.Stmt] = []
    for s in statements:
        if isinstance(s, ir.Region):
            body = simplify(s.body)
            if body and isinstance(body[-1], ir.Leave):
                body = body[:-1]
            if s.whole and not _plain(body):
                made.append(ir.Region(body, True, s.span))
            elif leaves_early(body):
                made.append(ir.Region(body, s.whole, s.span))
            else:
                made.extend(body)
        elif isinstance(s, ir.Branch):
            made.append(ir.Branch(s.condition, simplify(s.then), simplify(s.otherwise), s.span))
        elif isinstance(s, ir.Apply):
            for body_name in ("hit", "miss", "default"):
                body = getattr(s, body_name)
                if body is not None:
                    setattr(s, body_name, simplify(body))
            s.cases = {name: simplify(body) for name, body in s.cases.items()}
            made.append(s)
        else:
            made.append(s)
    return _until_jump(made)


def _until_jump(statements: list[ir.Stmt]) -> list[ir.Stmt]:
    """The statements up to the first jump; those behind a jump never run."""
    for index, s in enumerate(statements):
        if isinstance(s, ir.Leave | ir.Quit):
            return statements[: index + 1]
    return statements


def _straight(s: ir.Stmt) -> bool:
    return isinstance(s, ir.Primitive) or (isinstance(s, ir.Region) and s.whole)


def _plain(statements: list[ir.Stmt]) -> bool:
    return all(isinstance(s, ir.Primitive) for s in statements)


def _quits(statements: list[ir.Stmt]) -> bool:
    return any(isinstance(s, ir.Quit) or (isinstance(s, ir.Region) and _quits(s.body)) for s in statements)


def _place(statements: list[ir.Stmt]) -> Span:
    spans: list[Span] = [getattr(s, "span", NOWHERE) for s in statements]
    return next((span for span in spans if span is not NOWHERE), NOWHERE)


# --- actions: straight lists with jumps ---------------------------------------------------------------------------


class Jump(ir.Stmt):
    """To `label`; with a condition, only if the condition is false."""

    label: int
    condition: ir.Expr | None = None


class Label(ir.Stmt):
    number: int


def flatten(body: list[ir.Stmt]) -> list[ir.Primitive]:
    """An action's body as BMv2 runs it: primitives in a row, `_jump` and `_jump_if_zero` with absolute positions."""
    flattener = _Flattener()
    end = flattener.label()
    flattener.add(body, end, end)
    return flattener.resolve(end)


class _Flattener:
    def __init__(self) -> None:
        self.items: list[ir.Stmt] = []
        self.labels = 0

    def label(self) -> int:
        self.labels += 1
        return self.labels

    def add(self, body: list[ir.Stmt], leave: int, end: int) -> None:
        for s in body:
            match s:
                case ir.Primitive():
                    self.items.append(s)
                case ir.Branch():
                    otherwise, after = self.label(), self.label()
                    self.items.append(Jump(otherwise, s.condition))
                    self.add(s.then, leave, end)
                    if s.otherwise:
                        self.items.append(Jump(after))
                    self.items.append(Label(otherwise))
                    self.add(s.otherwise, leave, end)
                    self.items.append(Label(after))
                case ir.Region():
                    after = self.label()
                    self.add(s.body, after, end)
                    self.items.append(Label(after))
                case ir.Leave():
                    self.items.append(Jump(leave))
                    return
                case ir.Quit():
                    self.items.append(ir.Primitive("exit", ()))
                    self.items.append(Jump(end))
                    return
                case _:
                    raise AssertionError(s)

    def resolve(self, end: int) -> list[ir.Primitive]:
        self.items.append(Label(end))
        self._drop_idle_jumps()
        position: dict[int, int] = {}
        count = 0
        for item in self.items:
            if isinstance(item, Label):
                position[item.number] = count
            else:
                count += 1
        made: list[ir.Primitive] = []
        for item in self.items:
            if isinstance(item, ir.Primitive):
                made.append(item)
            elif isinstance(item, Jump):
                target = ir.Const(position[item.label], Bits(32))
                if item.condition is None:
                    made.append(ir.Primitive("_jump", (target,)))
                else:
                    made.append(ir.Primitive("_jump_if_zero", (item.condition, target)))
        return made

    def _drop_idle_jumps(self) -> None:
        """Take away unconditional jumps to where control goes anyway."""
        kept: list[ir.Stmt] = []
        labels: set[int] = set()  # right behind the item
        for item in reversed(self.items):
            idle = isinstance(item, Jump) and item.condition is None and item.label in labels
            labels = labels | {item.number} if isinstance(item, Label) else set()
            if not idle:
                kept.append(item)
        self.items = kept[::-1]
