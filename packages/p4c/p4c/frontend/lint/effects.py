"""The headers and variables that parts of the model read and write, as bits of an integer.

A header's bit says that it is valid, a local variable's that it has a value. Elements of stacks, members of unions and
copies that a call makes of its arguments are silent: nothing is asked of them, but their validity tells of others.
"""

from collections.abc import Iterator, Set

from p4c.model import parsers
from p4c.model.actions import Action, Primitive, Vector
from p4c.model.expressions import Binary, Const, Expression, FieldRef, Local, Ternary, Unary, ValidBit
from p4c.model.externs import Calculation, FieldInput, FieldList, HeaderInput, LearnList
from p4c.model.headers import Header, Stack, Union
from p4c.model.parsers import Extract, Operation, Verify
from p4c.model.primitives import SIGNATURES
from p4c.model.program import Program

SCALARS = "scalars"
DROPS = ("mark_to_drop", "drop")
USER_METADATA = "userMetadata."  # begins the names of fields of `scalars` that are no variables


def field_key(place: FieldRef) -> int:
    return place.header.index << 20 | place.field.index


class Effects:
    """Bits by header and field, and what the parts of a program need of them. `named`: headers that are not silent."""

    def __init__(self, program: Program, named: Set[int]) -> None:
        self.bits: dict[int, int] = {}  # of headers, by index
        self.of_field: dict[int, int] = {}  # of variables, and of metadata whose reads are of interest, by `field_key`
        self.names: dict[int, str] = {}
        for header in program.headers:
            if not header.metadata:
                self.bits[header.index] = self._bit(header.name)
        self.headers = (1 << len(self.names)) - 1
        self.silent = sum(bit for index, bit in self.bits.items() if index not in named)
        self.scalars = next((h for h in program.headers if h.name == SCALARS), None)
        for f in self.scalars.type.fields if self.scalars is not None else ():
            if "." in f.name and not f.name.startswith(USER_METADATA):
                assert self.scalars is not None
                self.of_field[field_key(FieldRef(self.scalars, f))] = self._bit(f.name)
        self.variables = (1 << len(self.names)) - 1 - self.headers
        known = program.intrinsics
        self.egress_spec = field_key(known.egress_spec)
        for place in (known.egress_spec, known.egress_port, known.mcast_grp):
            if place is not None:
                self.of_field[field_key(place)] = self._bit(place.field.name)
        self.metadata = (1 << len(self.names)) - 1 - self.headers - self.variables
        self._needs: dict[int, int] = {}
        self._primitives: dict[int, tuple[int, int, FieldRef | None]] = {}
        self._actions: dict[int, tuple[int, set[int]]] = {}
        tables = {t.name for t in program.tables}
        self.keys = {  # variables that only take the key of a table
            f.index
            for f in (self.scalars.type.fields if self.scalars is not None else ())
            if ".key" in f.name and f.name[: f.name.rindex(".key")] in tables
        }

    def _bit(self, name: str) -> int:
        bit = 1 << len(self.names)
        self.names[bit] = name
        return bit

    def place(self, e: object) -> int:
        """The bit that an access to this field asks for; 0 for one that needs nothing."""
        if type(e) is not FieldRef:
            return 0
        if e.header.metadata:
            return self.of_field.get(field_key(e), 0)
        return self.bits[e.header.index] & ~self.silent

    def needs(self, e: Expression) -> int:
        """The bits that reading `e` asks for, without those that a part of it makes sure of first."""
        kind = type(e)
        if kind is FieldRef:
            return self.place(e)
        if kind is Const or kind is Local or kind is ValidBit or kind is Header:
            return 0
        found = self._needs.get(id(e))
        if found is None:
            found = self._needs[id(e)] = self._work_out(e)
        return found

    def _work_out(self, e: Expression) -> int:
        if isinstance(e, Binary):
            right = self.needs(e.right)
            if e.op in ("and", "or"):
                right &= ~self.told(e.left, e.op == "and")
            return self.needs(e.left) | right
        if isinstance(e, Ternary):
            yes, no = (self.needs(part) for part in (e.left, e.right))
            yes, no = yes & ~self.told(e.condition, True), no & ~self.told(e.condition, False)
            return self.needs(e.condition) | yes | no
        if isinstance(e, Unary):
            return self.needs(e.operand)
        found = 0
        for part in e.parts:
            found |= self.needs(part)
        return found

    def told(self, condition: Expression, outcome: bool) -> int:
        """The headers that are valid if `condition` has this outcome."""
        match condition:
            case Unary("d2b", ValidBit(header)) if outcome:
                return self.bits.get(header.index, 0)
            case Unary("not", operand):
                return self.told(operand, not outcome)
            case Binary("and" | "or", left, right) if (condition.op == "and") == outcome:
                return self.told(left, outcome) | self.told(right, outcome)
        return 0

    def inputs(self, items: object) -> Iterator[FieldRef]:
        """The fields of which a calculation, a list of metadata or a digest consists."""
        if isinstance(items, FieldList):
            yield from items.fields
        elif isinstance(items, Calculation | LearnList):
            for item in items.inputs if isinstance(items, Calculation) else items.items:
                if isinstance(item, FieldInput):
                    yield item.field
                elif isinstance(item, HeaderInput):
                    yield from (FieldRef(item.header, f) for f in item.header.type.fields)

    def of_primitive(self, p: Primitive) -> tuple[int, int, FieldRef | None]:
        """The bits that a primitive needs to read; those it reads if it can; and the field that it writes."""
        found = self._primitives.get(id(p))
        if found is None:
            found = self._primitives[id(p)] = self._of_primitive(p)
        return found

    def _of_primitive(self, p: Primitive) -> tuple[int, int, FieldRef | None]:
        needed, looked_at, written = 0, 0, None
        if p.op == "assign" and type(p.args[0]) is FieldRef and isinstance(p.args[1], Expression):
            needed, written = self.needs(p.args[1]), p.args[0]  # nearly all are such
            kinds: tuple[str, ...] = ()
        else:
            kinds = SIGNATURES.get(p.op, ())
        for kind, argument in zip(kinds, p.args, strict=False):
            if kind == "lvalue":
                written = argument if isinstance(argument, FieldRef) else written
            elif isinstance(argument, Header | ValidBit):
                continue
            elif isinstance(argument, Expression):
                needed |= self.needs(argument)
            elif isinstance(argument, Vector):  # a message shows what is there
                for item in argument.items:
                    looked_at |= self.needs(item)
            else:
                for place in self.inputs(argument):
                    looked_at |= self.place(place)
        needed |= looked_at & self.variables
        if written is not None and written.header is self.scalars and written.field.index in self.keys:
            needed, looked_at = needed & self.variables, looked_at | needed
        return needed, looked_at, written

    def of_action(self, action: Action) -> tuple[int, set[int]]:
        """The bits that an action may ask for or change, all where it makes headers or exits; the fields it writes."""
        found = self._actions.get(action.id)
        if found is None:
            bits, keys = 0, set()
            for p in action.primitives:
                needed, _, written = self.of_primitive(p)
                bits |= needed
                if written is not None:
                    bits |= self.place(written)
                    keys.add(field_key(written))
                elif p.op == "exit" or (p.args and isinstance(p.args[0], Header | Stack | Union)):
                    bits = -1
                elif p.op in DROPS:
                    keys.add(self.egress_spec)
            found = self._actions[action.id] = bits, keys
        return found

    def of_operation(self, o: Operation) -> int:
        """The bits that an operation of a parser state needs to read."""
        match o:
            case parsers.Set(value=Expression() as value):
                return self.needs(value)
            case Verify():
                return self.needs(o.condition)
            case Extract(varbit_width=Expression() as width):
                return self.needs(width)
        return 0
