"""How the headers and metadata of a program lie in C: one `struct headers`, whose members the other modules name."""

import re
from collections.abc import Sequence

from p4c.model import Field, Header, HeaderType, Program, Stack, UnionStack, UnsupportedError
from p4c.model.expressions import FieldRef

WIDEST_BITS = 128  # wider values are byte strings that can only be moved and compared
VARBIT_BYTES_DEFAULT = 256  # for a varbit field in a header type without max_length


def identifier(name: str) -> str:
    """`name` as part of a C identifier."""
    return re.sub(r"\W", "_", name, flags=re.ASCII).strip("_")[:48]


def is_wide(field: Field) -> bool:
    return field.width_bits > WIDEST_BITS


def c_type(width_bits: int) -> str:
    """The smallest integer type that holds so many bits (at most 128)."""
    for bits in (8, 16, 32, 64, 128):
        if width_bits <= bits:
            return f"u{bits}"
    raise ValueError(f"no integer type of {width_bits} bits")


def varbit_bytes(kind: HeaderType) -> int:
    """The longest varbit field of a header type."""
    if kind.max_bytes:
        return max(kind.max_bytes - kind.width_bits // 8, 0)
    return VARBIT_BYTES_DEFAULT


def header_bytes_max(kind: HeaderType) -> int:
    return kind.width_bits // 8 + (varbit_bytes(kind) if kind.varbit else 0)


class Layout:
    """Names: `h` is the `struct headers *` in scope wherever these texts are used."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._stacks: tuple[Stack | UnionStack, ...] = (*program.stacks, *program.union_stacks)
        self._arrays = [array for stack in self._stacks for array in self.arrays(stack)]
        self._header: dict[int, str] = {}
        for name, headers in self._arrays:
            self._header |= {header.index: f"h->{name}[{position}]" for position, header in enumerate(headers)}
        self._loose = [header for header in program.headers if header.index not in self._header]
        for header in self._loose:
            self._header[header.index] = f"h->h{header.index}_{identifier(header.name)}"
        self._type_index = {id(kind): index for index, kind in enumerate(program.header_types)}

    def type_name(self, kind: HeaderType) -> str:
        return f"struct t{self._type_index[id(kind)]}_{identifier(kind.name)}"

    def stack_name(self, stack: Stack | UnionStack) -> str:
        return f"{'s' if isinstance(stack, Stack) else 'us'}{stack.index}_{identifier(stack.name)}"

    def arrays(self, stack: Stack | UnionStack) -> list[tuple[str, Sequence[Header]]]:
        """Name and headers of a stack's array, or of those of its unions' members."""
        name = self.stack_name(stack)
        if isinstance(stack, Stack):
            return [(name, stack.headers)]
        members = zip(*(union.headers for union in stack.unions), strict=True)
        return [(f"{name}_m{member}", headers) for member, headers in enumerate(members)]

    def header(self, header: Header) -> str:
        """An lvalue of the header's struct."""
        return self._header[header.index]

    def member(self, field: Field) -> str:
        return f"f{field.index}_{identifier(field.name)}"

    def field(self, ref: FieldRef) -> str:
        return f"{self.header(ref.header)}.{self.member(ref.field)}"

    def varbit_length(self, field: Field) -> str:
        """The member that holds a varbit field's width in bytes."""
        return f"{self.member(field)}_bytes"

    def declarations(self) -> list[str]:
        lines: list[str] = []
        for kind in self.program.header_types:
            lines += [f"{self.type_name(kind)} {{", "    u8 valid;"]
            lines += [*(f"    {self._declare(kind, field)};" for field in kind.fields), "};", ""]
        lines.append("struct headers {")
        lines += [f"    {self.type_name(h.type)} {self._header[h.index][3:]};" for h in self._loose]
        for name, headers in self._arrays:
            struct = self.type_name(headers[0].type)
            lines += [f"    {struct} {name}[{len(headers)}];", f"    {struct} {name}_nowhere;"]
        lines += [f"    u32 {self.stack_name(stack)}_next;" for stack in self._stacks]
        lines += ["};", ""]
        return lines + [line for array in self._arrays for line in self._stack_access(*array)]

    def _declare(self, kind: HeaderType, field: Field) -> str:
        name = self.member(field)
        if field.varbit:
            return f"u16 {self.varbit_length(field)}; u8 {name}[{max(1, varbit_bytes(kind))}]"
        if is_wide(field):
            if field.width_bits % 8:
                raise UnsupportedError(
                    f"{kind.name}.{field.name}: the native engine takes fields above {WIDEST_BITS} bits only in whole "
                    f"bytes, this one has {field.width_bits} bits"
                )
            return f"u8 {name}[{field.width_bits // 8}]"
        return f"{c_type(field.width_bits)} {name}"

    def _stack_access(self, name: str, headers: Sequence[Header]) -> list[str]:
        """An element at a run-time index; outside the stack an invalid header of zeros whose writes are lost."""
        kind = self.type_name(headers[0].type)
        return [
            f"static inline {kind} *{name}_at(struct headers *h, u64 index)",
            "{",
            f"    if (LIKELY(index < {len(headers)}))",
            f"        return &h->{name}[index];",
            f"    memset(&h->{name}_nowhere, 0, sizeof h->{name}_nowhere);",
            f"    return &h->{name}_nowhere;",
            "}",
            "",
        ]
