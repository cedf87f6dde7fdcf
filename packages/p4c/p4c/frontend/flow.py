"""Control flow while it is still structured: statements after lowering, before `emit/` turns them into nodes."""

from collections.abc import Callable, Iterator
from dataclasses import field

from common.records import Mutable
from p4c.frontend.declared import DeclaredTable
from p4c.frontend.diagnostics import NOWHERE, SourceSpan
from p4c.frontend.scalar import Scalar
from p4c.model.actions import Argument, Primitive
from p4c.model.expressions import Const
from p4c.model.headers import Header
from p4c.model.parsers import Operation
from p4c.model.source import SourceInfo


class Flow(Mutable):
    """A statement."""


class Step(Flow):
    """One primitive."""

    op: str
    args: tuple[Argument, ...]
    span: SourceSpan = NOWHERE


class ParserStep(Flow):
    """Operations of parser states only: extract, advance, verify, look ahead."""

    operation: Operation
    span: SourceSpan


class Emit(Flow):
    """Operations of the deparser only."""

    headers: list[Header]
    span: SourceSpan


class Branch(Flow):
    condition: Scalar
    then: list[Flow]
    otherwise: list[Flow]
    span: SourceSpan = NOWHERE


class Apply(Flow):
    """Apply a table; then `hit` or `miss`, or the case of the action that ran (None: `default`)."""

    table: DeclaredTable
    hit: list[Flow] | None = None
    miss: list[Flow] | None = None
    cases: dict[str, list[Flow]] = field(default_factory=dict)
    default: list[Flow] | None = None
    span: SourceSpan = NOWHERE


class Region(Flow):
    """Statements that a Leave inside ends early. `whole`: to be carried out as one action, hence atomically."""

    body: list[Flow]
    whole: bool = False
    span: SourceSpan = NOWHERE


class Repeat(Flow):
    """Statements again and again, until a Leave: inside a Region, and within one action."""

    body: list[Flow]


class Leave(Flow):
    """Go on after the innermost Region."""


class Quit(Flow):
    """P4's exit: the end of the pipeline."""


def assigned(target: Scalar, source: Scalar, span: SourceSpan) -> Step:
    """`target = source`, where the target is a field."""
    return Step("assign", (target.of, source.data), span)


# --- walks ---------------------------------------------------------------------------------------------------------


def bodies(s: Flow) -> list[list[Flow]]:
    """The statement lists directly inside `s`, each once: cases of a switch share the body that they lead to."""
    match s:
        case Branch():
            return [s.then, s.otherwise]
        case Region() | Repeat():
            return [s.body]
        case Apply():
            lists = (s.hit, s.miss, s.default, *s.cases.values())
            return list({id(b): b for b in lists if b is not None}.values())
    return []


def walk(statements: list[Flow]) -> Iterator[Flow]:
    """All statements, those inside others included."""
    for s in statements:
        yield s
        for body in bodies(s):
            yield from walk(body)


def leaves_early(statements: list[Flow]) -> bool:
    """Whether a Leave in `statements` would go beyond them: a Region inside ends its own."""
    return any(
        isinstance(s, Leave) or (not isinstance(s, Region) and any(map(leaves_early, bodies(s)))) for s in statements
    )


def until_jump(statements: list[Flow]) -> list[Flow]:
    """The statements up to the first jump; those behind a jump never run."""
    for index, s in enumerate(statements):
        if isinstance(s, Leave | Quit):
            return statements[: index + 1]
    return statements


# --- actions: straight lists with jumps ----------------------------------------------------------------------------


class Jump(Flow):
    """To `label`; with a condition, only if the condition is false."""

    label: int
    condition: Scalar | None = None


class FlowLabel(Flow):
    number: int


def flatten(body: list[Flow], source: Callable[[SourceSpan], SourceInfo | None]) -> tuple[Primitive, ...]:
    """An action's body as BMv2 runs it: primitives in a row, `_jump` and `_jump_if_zero` with absolute positions."""
    flattener = _Flattener()
    end = flattener.label()
    flattener.add(body, end, end)
    return flattener.resolve(end, source)


class _Flattener:
    def __init__(self) -> None:
        self.items: list[Flow] = []
        self.labels = 0

    def label(self) -> int:
        self.labels += 1
        return self.labels

    def add(self, body: list[Flow], leave: int, end: int) -> None:
        for s in body:
            match s:
                case Step():
                    self.items.append(s)
                case Branch():
                    otherwise, after = self.label(), self.label()
                    self.items.append(Jump(otherwise, s.condition))
                    self.add(s.then, leave, end)
                    if s.otherwise:
                        self.items.append(Jump(after))
                    self.items.append(FlowLabel(otherwise))
                    self.add(s.otherwise, leave, end)
                    self.items.append(FlowLabel(after))
                case Region():
                    after = self.label()
                    self.add(s.body, after, end)
                    self.items.append(FlowLabel(after))
                case Repeat():
                    first = self.label()
                    self.items.append(FlowLabel(first))
                    self.add(s.body, leave, end)
                    self.items.append(Jump(first))
                case Leave():
                    self.items.append(Jump(leave))
                    return
                case Quit():
                    self.items.append(Step("exit", ()))
                    self.items.append(Jump(end))
                    return
                case _:
                    raise AssertionError(s)

    def resolve(self, end: int, source: Callable[[SourceSpan], SourceInfo | None]) -> tuple[Primitive, ...]:
        self.items.append(FlowLabel(end))
        self._drop_idle_jumps()
        position: dict[int, int] = {}
        count = 0
        for item in self.items:
            if isinstance(item, FlowLabel):
                position[item.number] = count
            else:
                count += 1
        made: list[Primitive] = []
        for item in self.items:
            if isinstance(item, Step):
                made.append(Primitive(item.op, item.args, source(item.span)))
            elif isinstance(item, Jump):
                target = Const(position[item.label])
                if item.condition is None:
                    made.append(Primitive("_jump", (target,)))
                else:
                    made.append(Primitive("_jump_if_zero", (item.condition.data, target)))
        return tuple(made)

    def _drop_idle_jumps(self) -> None:
        """Take away unconditional jumps to where control goes anyway."""
        kept: list[Flow] = []
        labels: set[int] = set()  # right behind the item
        for item in reversed(self.items):
            idle = isinstance(item, Jump) and item.condition is None and item.label in labels
            labels = labels | {item.number} if isinstance(item, FlowLabel) else set()
            if not idle:
                kept.append(item)
        self.items = kept[::-1]
