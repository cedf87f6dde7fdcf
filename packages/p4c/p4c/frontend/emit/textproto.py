"""Just enough of protobuf's text format to write a message down, without loading protobuf."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class EnumWord:
    """An enum constant or a boolean: written without quotes."""

    text: str


Scalar = int | str | bytes | EnumWord | None


@dataclass(slots=True)
class TextMessage:
    """Fields in the order in which they are written; a repeated field is added once for each element."""

    fields: list[tuple[str, Scalar | TextMessage]] = field(default_factory=list)

    def add(self, name: str, value: Scalar | TextMessage) -> TextMessage:
        """Append a field. Zero is proto3's default and, like None, not written."""
        if value is not None and value != 0:
            self.fields.append((name, value))
        return self

    def text(self, indent: int = 0) -> str:
        pad = "  " * indent
        lines = []
        for name, value in self.fields:
            if isinstance(value, TextMessage):
                inner = value.text(indent + 1)
                lines.append(f"{pad}{name} {{\n{inner}{pad}}}\n")
            else:
                lines.append(f"{pad}{name}: {_scalar(value)}\n")
        return "".join(lines)


def _scalar(value: Scalar) -> str:
    if isinstance(value, EnumWord):
        return value.text
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return '"' + "".join([_BYTES[b] for b in value]) + '"'
    return str(value)


def _byte(b: int) -> str:
    if b in (0x22, 0x27, 0x5C):
        return "\\" + chr(b)
    if b == 0x0A:
        return "\\n"
    return chr(b) if 0x20 <= b < 0x7F else f"\\{b:03o}"


_BYTES = [_byte(b) for b in range(256)]
