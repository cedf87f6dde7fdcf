"""What IR expressions mean by the P4_16 specification: exact arithmetic, cut to the type after each operator.

Written without a look at the masks that the compiler emits, so that the values here are a truth from outside for what
the model's expressions compute.
"""

from __future__ import annotations

from switch.frontend import ir
from switch.frontend.check.types import Bits, Type
from switch.model import Program
from switch.reference.packet import Packet

EMPTY_LAST_INDEX = (1 << 32) - 1


def cut(value: int, t: Type) -> int:
    """`value` as the type holds it (specification, sections 8.6 and 8.7)."""
    if not isinstance(t, Bits):
        return value
    low = value & ((1 << t.width) - 1)
    return low - (1 << t.width) if t.signed and low >> (t.width - 1) else low


def clamp(value: int, t: Bits) -> int:
    """`value`, or the nearest value that the type holds (section 8.6)."""
    low, high = (-(1 << (t.width - 1)), (1 << (t.width - 1)) - 1) if t.signed else (0, (1 << t.width) - 1)
    return min(max(value, low), high)


class Meaning:
    """Reads expressions in the header vector of a packet."""

    def __init__(self, program: Program, packet: Packet) -> None:
        self.packet = packet
        self.headers = {h.name: h for h in program.headers}
        self.stacks = {s.name: s for s in program.stacks}
        self.unions = {u.name: u for u in program.unions}

    def of(self, e: ir.Expr) -> int:
        """The value; a bool is 0 or 1."""
        match e:
            case ir.Const():
                return e.value
            case ir.ActionData():
                return self.packet.args[e.index]
            case ir.FieldRef(field="$valid$"):
                return int(self.packet.valid[self.headers[e.header].index])
            case ir.FieldRef():
                return self.field(self.headers[e.header].index, e.field)
            case ir.Valid():
                members = self.unions[e.header].headers if e.union else (self.headers[e.header],)
                return int(any(self.packet.valid[h.index] for h in members))
            case ir.HeadersEqual():
                return int(self.equal(self.headers[e.left].index, self.headers[e.right].index))
            case ir.LastIndex():
                return self.packet.nexts[self.stacks[e.stack].index] - 1 & EMPTY_LAST_INDEX
            case ir.LastField():
                return self.element(e.stack, self.packet.nexts[self.stacks[e.stack].index] - 1, e.field)
            case ir.ElementField():
                return self.element(e.stack, self.of(e.index), e.field)
            case ir.SliceOf():
                return self.of(e.base) >> e.low & ((1 << (e.high - e.low + 1)) - 1)
            case ir.Operation():
                return self.operation(e)
        raise AssertionError(e)

    def field(self, header: int, name: str) -> int:
        layout = self.packet.layout
        found = layout.program.headers[header].type.field(name)
        assert found is not None
        return self.packet.values[layout.bases[header] + found.index]

    def element(self, stack: str, index: int, field: str) -> int:
        headers = self.stacks[stack].headers
        return self.field(headers[index].index, field) if 0 <= index < len(headers) else 0

    def equal(self, a: int, b: int) -> bool:
        """As BMv2 has it: invalid headers are equal to nothing (rule 19 of "Determinism")."""
        names = [f.name for f in self.packet.layout.program.headers[a].type.fields]
        valid = self.packet.valid[a] and self.packet.valid[b]
        return valid and all(self.field(a, n) == self.field(b, n) for n in names)

    def operation(self, e: ir.Operation) -> int:
        t = e.type
        if e.op == "?":
            return self.of(e.operands[1] if self.of(e.operands[0]) else e.operands[2])
        values = [self.of(o) for o in e.operands]
        a, b = values[0], values[-1]
        match e.op:
            case "!":
                return int(not a)
            case "&&":
                return int(bool(a and b))
            case "||":
                return int(bool(a or b))
            case "cast" | "~" | "-" if len(values) == 1:
                return cut({"cast": a, "~": ~a, "-": -a}[e.op], t)
            case "==" | "!=" | "<" | "<=" | ">" | ">=":
                return int({"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[e.op])
            case "|+|" | "|-|":
                assert isinstance(t, Bits)
                return clamp(a + b if e.op == "|+|" else a - b, t)
            case "++":
                low = e.operands[1].type
                assert isinstance(low, Bits)
                return cut(a << low.width | b & ((1 << low.width) - 1), t)
            case "<<" | ">>":
                far = min(b, 4096)
                return cut(a << far if e.op == "<<" else a >> far, t)
            case "/" | "%":
                return 0 if b == 0 else a // b if e.op == "/" else a % b
        return cut({"+": a + b, "-": a - b, "*": a * b, "&": a & b, "|": a | b, "^": a ^ b}[e.op], t)
