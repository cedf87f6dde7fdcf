"""Expressions, compiled to closures over a packet.

Integers are exact; `writer` cuts a value to the width of its field. Both engines give the same results where BMv2
defines none (`README.md` beside this file, "Determinism"): a division by zero gives 0, a shift left by 4096 or more
gives 0, and a stack element outside its stack is an invalid header of zeros.
"""

from collections.abc import Callable
from typing import Any

from p4c.model import Field, Header, Stack, Union
from p4c.model import expressions as ex
from switch.reference.externs import Externs
from switch.reference.packet import FieldSlots, Packet

Reader = Callable[[Packet], int]
Writer = Callable[[Packet, int], None]
Test = Callable[[Packet], bool]
HeaderFinder = Callable[[Packet], int]  # header index; NOWHERE when there is none

NOWHERE = -1
MAX_SHIFT = 4096
EMPTY_LAST_INDEX = (1 << 32) - 1


def fit(field: Field) -> Callable[[int], int]:
    """The stored form of a value that is written to the field."""
    mask, width = field.mask, field.width_bits
    if field.varbit:
        return lambda value: value
    if field.saturating:
        low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if field.signed else (0, mask)
        return lambda value: min(max(value, low), high)
    if field.signed:
        half = 1 << (width - 1)
        return lambda value: ((value + half) & mask) - half
    return lambda value: value & mask


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b if b > 0 else 0,
    "%": lambda a, b: a % b if b > 0 else 0,
    "<<": lambda a, b: a << b if 0 <= b < MAX_SHIFT else 0,
    ">>": lambda a, b: a >> min(b, MAX_SHIFT) if b >= 0 else 0,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "two_comp_mod": lambda a, width: ((a + (1 << width - 1)) & ((1 << width) - 1)) - (1 << width - 1),
    "usat_cast": lambda a, width: min(max(a, 0), (1 << width) - 1),
    "sat_cast": lambda a, width: min(max(a, -(1 << (width - 1))), (1 << (width - 1)) - 1),
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


class ExpressionCompiler:
    """Compiles expressions of one program for one engine's externs."""

    def __init__(self, layout: FieldSlots, externs: Externs) -> None:
        self.layout = layout
        self.externs = externs

    # --- data ---

    def reader(self, node: ex.Expression) -> Reader:
        match node:
            case ex.Const(value):
                return lambda packet: value
            case ex.Local(index):
                return lambda packet: packet.args[index]
            case ex.FieldRef(header, field):
                slot = self.layout.slot(header, field)
                return lambda packet: packet.values[slot]
            case ex.ValidBit(header):
                number = header.index
                return lambda packet: int(packet.valid[number])
            case ex.LastField() | ex.AccessField():
                return self._field_reader(self.field_header(node), node.field.index)
            case ex.RegisterCell(register, cell):
                cells, read = self.externs.registers[register.name], self.reader(cell)
                return lambda packet: cells[i] if 0 <= (i := read(packet)) < len(cells) else 0
            case ex.Ternary(condition, left, right):
                test, if_true, if_false = self.test(condition), self.reader(left), self.reader(right)
                return lambda packet: if_true(packet) if test(packet) else if_false(packet)
            case ex.Unary():
                return self._unary(node)
            case ex.Binary(op, left, right):
                apply, a, b = _ARITHMETIC[op], self.reader(left), self.reader(right)
                return lambda packet: apply(a(packet), b(packet))
        raise AssertionError(f"not data: {node}")

    def _unary(self, node: ex.Unary) -> Reader:
        if node.op == "~":
            read = self.reader(node.operand)
            return lambda packet: ~read(packet)
        if node.op == "b2d":
            test = self.test(node.operand)
            return lambda packet: int(test(packet))
        assert isinstance(node.operand, Stack)
        stack = node.operand.index
        if node.op == "size_stack":
            return lambda packet: packet.nexts[stack]
        return lambda packet: packet.nexts[stack] - 1 if packet.nexts[stack] else EMPTY_LAST_INDEX

    def field_header(self, node: ex.FieldRef | ex.LastField | ex.AccessField) -> HeaderFinder:
        """The header that the field is in."""
        if isinstance(node, ex.FieldRef | ex.AccessField):
            return self.header(node.header)
        stack, members = node.stack.index, [h.index for h in node.stack.headers]
        return lambda packet: members[packet.nexts[stack] - 1] if packet.nexts[stack] else NOWHERE

    def _field_reader(self, find: HeaderFinder, field: int) -> Reader:
        bases = self.layout.bases

        def read(packet: Packet) -> int:
            header = find(packet)
            return 0 if header == NOWHERE else packet.values[bases[header] + field]

        return read

    def writer(self, node: Any) -> Writer:
        """Of an lvalue: FieldRef, LastField or AccessField."""
        store = fit(node.field)
        if isinstance(node, ex.FieldRef):
            slot = self.layout.slot(node.header, node.field)

            def write_field(packet: Packet, value: int) -> None:
                packet.values[slot] = store(value)

            return write_field
        find, bases, field = self.field_header(node), self.layout.bases, node.field.index

        def write(packet: Packet, value: int) -> None:
            header = find(packet)
            if header != NOWHERE:
                packet.values[bases[header] + field] = store(value)

        return write

    # --- bool ---

    def test(self, node: ex.Expression) -> Test:
        match node:
            case ex.Bool(value):
                return lambda packet: value
            case ex.Ternary(condition, left, right):
                test, if_true, if_false = self.test(condition), self.test(left), self.test(right)
                return lambda packet: if_true(packet) if test(packet) else if_false(packet)
            case ex.Unary("not", operand):
                inner = self.test(operand)
                return lambda packet: not inner(packet)
            case ex.Unary("d2b", operand):
                read = self.reader(operand)
                return lambda packet: read(packet) != 0
            case ex.Unary("valid", operand):
                find = self.header(operand)
                return lambda packet: (header := find(packet)) != NOWHERE and packet.valid[header]
            case ex.Unary("valid_union", operand):
                union = self.union(operand)
                return lambda packet: any(packet.valid[h] for h in union(packet))
            case ex.Binary("and", left, right):
                a, b = self.test(left), self.test(right)
                return lambda packet: a(packet) and b(packet)
            case ex.Binary("or", left, right):
                a, b = self.test(left), self.test(right)
                return lambda packet: a(packet) or b(packet)
            case ex.Binary(op, left, right):
                return self._comparison(op, left, right)
        raise AssertionError(f"not bool: {node}")

    def _comparison(self, op: str, left: ex.Expression, right: ex.Expression) -> Test:
        if left.kind is ex.Kind.DATA:
            compare, a, b = _COMPARISONS[op], self.reader(left), self.reader(right)
            return lambda packet: compare(a(packet), b(packet))
        expected = op == "=="
        if left.kind is ex.Kind.BOOL:
            p, q = self.test(left), self.test(right)
            return lambda packet: (p(packet) == q(packet)) is expected
        if left.kind is ex.Kind.HEADER:
            x, y = self.header(left), self.header(right)
            return lambda packet: self._equal(packet, x(packet), y(packet)) is expected
        u, v = self.union(left), self.union(right)

        def unions_equal(packet: Packet) -> bool:
            pairs = zip(u(packet), v(packet), strict=False)  # outside its stack a union has none
            return any(self._equal(packet, a, b) for a, b in pairs)

        return lambda packet: unions_equal(packet) is expected

    def _equal(self, packet: Packet, a: int, b: int) -> bool:
        if NOWHERE in (a, b) or not (packet.valid[a] and packet.valid[b]):
            return False
        pairs = zip(self.layout.slots(a), self.layout.slots(b), strict=True)
        return packet.varbits.get(a, 0) == packet.varbits.get(b, 0) and all(
            packet.values[i] == packet.values[j] for i, j in pairs
        )

    # --- headers, unions ---

    def header(self, node: ex.Expression) -> HeaderFinder:
        match node:
            case Header():
                number = node.index
                return lambda packet: number
            case ex.StackElement(stack, index):
                members, read = [h.index for h in stack.headers], self.reader(index)
                return lambda packet: members[i] if 0 <= (i := read(packet)) < len(members) else NOWHERE
            case ex.UnionMember(union, member):
                find = self.union(union)
                return lambda packet: headers[member] if (headers := find(packet)) else NOWHERE
            case ex.Ternary(condition, left, right):
                test, if_true, if_false = self.test(condition), self.header(left), self.header(right)
                return lambda packet: if_true(packet) if test(packet) else if_false(packet)
        raise AssertionError(f"not a header: {node}")

    def union(self, node: ex.Expression) -> Callable[[Packet], tuple[int, ...]]:
        """The header indices of the union's members; none when it is outside its stack."""

        def members(union: Union) -> tuple[int, ...]:
            return tuple(h.index for h in union.headers)

        match node:
            case Union():
                indices = members(node)
                return lambda packet: indices
            case ex.UnionStackElement(stack, index):
                all_members, read = [members(u) for u in stack.unions], self.reader(index)
                return lambda packet: all_members[i] if 0 <= (i := read(packet)) < len(all_members) else ()
            case ex.Ternary(condition, left, right):
                test, if_true, if_false = self.test(condition), self.union(left), self.union(right)
                return lambda packet: if_true(packet) if test(packet) else if_false(packet)
        raise AssertionError(f"not a union: {node}")
