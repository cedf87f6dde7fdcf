"""What is made of the table of headers: C's offsets, and `docs/reference/headers.md`.

    .venv/bin/python -m tests.helpers.headers_page

writes both.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from endpoint.nic import headers, wire
from endpoint.nic.headers import Field, Header
from tests.helpers.doors import ROOT

PAGE = ROOT / "docs" / "reference" / "headers.md"
OFFSETS = ROOT / "endpoint" / "nic" / "native" / "layouts.h"
HEADERS: tuple[type[Header], ...] = tuple(
    kind
    for kind in vars(headers).values()
    if isinstance(kind, type) and issubclass(kind, Header) and kind is not Header
)
HEAD = """# The headers of a packet

Behind UDP a packet is `BTH | extension headers | data and pad | ICRC`, in network byte order but the ICRC. A place is a
byte, and behind the point a bit of it, 0 the most significant. Bits that no row names are reserved. `dialects.md` says
where readers of the specification disagree. `python -m tests.helpers.headers_page` makes this page of
`endpoint/nic/headers.py`, and a test compares the two.
"""


def words_of(kind: type[Header]) -> list[tuple[int, list[Field]]]:
    """The bit that each word of a header begins with, and its fields that are not reserved."""
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]  # `header` has made it one
    words = [(word[0].at, [field for field in word if field.name in names]) for word in kind.LAYOUT]
    return [(at, own) for at, own in words if own]


def page() -> str:
    parts = [HEAD]
    for kind in HEADERS:
        rows = [field for _, word in words_of(kind) for field in word]
        parts.append(f"## {kind.__name__}\n{' '.join((kind.__doc__ or '').split())}\n")
        parts.append("| place | bits | field |\n|---|---|---|")
        parts += [f"| {at // 8}.{at % 8} | {bits}{' signed' * signed} | `{name}` |" for name, bits, signed, at in rows]
        parts[-1] += "\n"
    return "\n".join(parts)


def offsets() -> str:
    """Where each header of the default dialect has its words, by the first field of each."""
    made = "Made of endpoint/nic/headers.py by tests/helpers/headers_page.py: where words begin, by their first field."
    lines = [f"/* {made} */", "#pragma once"]
    for kind in HEADERS:
        name = kind.__name__.upper()
        named = [f"{name}_{first.name.upper()} = {at // 8}" for at, (first, *_) in words_of(kind)]
        if kind is not headers.ClientEeth:
            lines.append(f"enum {{ {', '.join([*named, f'{name}_BYTES = {kind.BYTES}'])} }};")
    lines.append(f"enum {{ {', '.join(f'OP_{code.name} = {code.value:#x}' for code in wire.Opcode)} }};")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    Path(PAGE).write_text(page())
    Path(OFFSETS).write_text(offsets())
